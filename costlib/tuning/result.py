"""What a tuning run reports at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from costlib.errors import InputError
from costlib.frozen import Frozen
from costlib.tuning.comparison import Comparison
from costlib.tuning.ranges import RangeResult
from costlib.workloads.agreement import OutputAgreement

RESULT = "result.json"
"""In a run's folder."""

FURTHER_TRIALS = 100
"""What a run that is over says what they would bring."""


class TaskResult(Frozen):
    """What tuning did for one task.

    Attributes
    ----------
    calls
        How often each network calls it.
    latency_before_s, latency_after_s
        Seconds of one call, untuned and with the best program found; ``None`` if it did not run
        or was not tuned.
    left
        Why it was left as TVM compiles it; ``None`` if it was tuned.
    title
        Its operator, shapes and short id; empty in results of older versions.
    vendor_s
        Seconds of one call by the vendor's kernel, where that is taken.
    """

    name: str
    workload_id: str
    calls: dict[str, int]
    flops: float
    trials: int
    latency_before_s: float | None
    latency_after_s: float | None
    left: str | None = None
    title: str = ""
    vendor_s: float | None = None

    @property
    def latency_s(self) -> float | None:
        """Seconds of one call of the fastest of its programs; ``None`` if none ran."""
        all_s = (self.latency_before_s, self.latency_after_s, self.vendor_s)
        return min((s for s in all_s if s is not None), default=None)

    @property
    def gflops_per_s(self) -> float | None:
        """Throughput of the best program."""
        return self.flops / self.latency_after_s / 1e9 if self.latency_after_s else None


class CurvePoint(Frozen):
    """One trial of a tuning run.

    Attributes
    ----------
    elapsed_s
        Seconds of tuning until the trial's batch was measured, in all sessions.
    task
        Index into the result's tasks.
    latency_s
        What was measured; ``None`` if the program failed.
    best_s
        The task's best latency after that; it rises where the best program, measured again, turns
        out to be slower.
    """

    elapsed_s: float
    task: int
    latency_s: float | None
    best_s: float | None


class NetworkResult(Comparison):
    """A tuned network, measured as a whole.

    Attributes
    ----------
    network
        Its name.
    library
        The compiled network.
    function
        Which of its functions that is; another one than ``main`` for a point of a range that is not
        the largest.
    needs
        Libraries that it looks for where it runs.
    """

    network: str
    library: str
    function: str = "main"
    needs: tuple[str, ...] = ()


class UntimedNetwork(Frozen):
    """A tuned network for a device that was only simulated.

    Attributes
    ----------
    network
        Its name.
    library
        The compiled network.
    original
        What its outputs are compared with.
    outputs
        The tuned network's outputs beside the original's, by an emulator.
    not_compared
        Why they are not compared, in a line; ``None`` if they are.
    max_abs_error, max_abs_output
        Their largest difference, and the original's largest element; ``None`` without either.
    """

    network: str
    library: str
    original: str
    outputs: tuple[OutputAgreement, ...] = ()
    not_compared: str | None = None
    max_abs_error: float | None = None
    max_abs_output: float | None = None


class TuneResult(Frozen):
    """What a tuning run found.

    Attributes
    ----------
    networks
        Each network, compiled and compared; of those with ranges, each point. None if the device
        was simulated.
    untimed
        Each network, compiled for a device that was simulated.
    simulated
        Whether every latency is a made-up one of such a device.
    ranges
        Networks whose dimensions have ranges.
    trials
        Programs measured.
    config
        What the run was to reach, and how: a :class:`costlib.tuning.config.TuneConfig`.
    elapsed_s
        Seconds that everything took in this session.
    search_s, measure_s
        Seconds that proposing and learning took while nothing was built, and that building and
        running took, in all sessions.
    stopped
        Why it came to its end.
    tasks, curve
        What was done for each task, and each trial in order.
    expected_gain
        Share by which the scheduler expects another :data:`FURTHER_TRIALS` trials to lower the
        objective; ``None`` if it cannot say, or in results of older versions.
    """

    networks: tuple[NetworkResult, ...]
    untimed: tuple[UntimedNetwork, ...] = ()
    simulated: bool = False
    ranges: tuple[RangeResult, ...] = ()
    bundle: str
    hardware_id: str
    seed: int
    config: dict[str, Any] = Field(default_factory=dict)
    trials: int
    elapsed_s: float
    search_s: float
    measure_s: float
    stopped: str
    tasks: tuple[TaskResult, ...]
    curve: tuple[CurvePoint, ...]
    expected_gain: float | None = None


def read_result(folder: Path) -> TuneResult:
    """Read what a run came to; raise :class:`InputError` if there is no such thing."""
    try:
        result = TuneResult.model_validate_json((folder / RESULT).read_text())
    except FileNotFoundError:
        raise InputError(f"{folder} holds no finished run: it has no {RESULT}") from None
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{folder / RESULT} cannot be read: {reason}") from None
    if any(not 0 <= point.task < len(result.tasks) for point in result.curve):
        raise InputError(f"{folder / RESULT} is damaged: a trial is of none of its tasks")
    return result
