"""A tuned network against the untuned one, PyTorch and other engines: latencies and outputs."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pydantic import Field

from costlib.arrays import save_arrays
from costlib.errors import MeasureError
from costlib.frozen import Frozen
from costlib.measure.config import NetworkJob
from costlib.measure.gpu_state import GpuState, gpu_state, moved
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.engines.catalogue import ENGINES, PYTORCH
from costlib.tuning.engines.loading import Setting
from costlib.tuning.originals import Original
from costlib.tuning.rivals import Rival, Rivals
from costlib.tuning.turns import Contestant, take_turns
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads import Network
from costlib.workloads.agreement import OutputAgreement, largest_of

_log = logging.getLogger(__name__)

_FIRST_TURNS, _MOST_TURNS = 4, 9


class EngineResult(Frozen):
    """A network in another engine.

    Attributes
    ----------
    name, title
        Of the engine: as ``--against`` takes it, and as it calls itself.
    latency_s
        Seconds of one call; ``None`` if it does not run the network.
    max_abs_error
        Largest difference between its outputs and the original's; ``None`` if there is none to
        compare.
    problem
        Why it has no latency, in a line.
    """

    name: str
    title: str
    latency_s: float | None
    max_abs_error: float | None = None
    problem: str | None = None


class Comparison(Frozen):
    """Whole-network figures.

    Attributes
    ----------
    latency_before_s, latency_after_s, pytorch_latency_s
        Seconds of one call, untuned, tuned, and PyTorch's on the same inputs (``None`` for a
        network that did not come from PyTorch, or runs on another machine): each turn's
        fastest call, medians over the turns that were disturbed least.
    engines
        The same of the engines that were asked for.
    spread_s
        Seconds of the fastest and the slowest of those turns, by ``"untuned"``, ``"tuned"``,
        ``"PyTorch"`` and titles of engines; empty in results of older versions.
    doubtful
        Those of them whose turns did not agree.
    original
        What the outputs are compared with.
    outputs
        The tuned network's outputs beside the original's.
    max_abs_error, max_abs_output
        Their largest difference, and the original's largest element.
    gpu
        What the GPU was like before and after, if it is one.
    rounding_error
        Of a network that is rounded to fewer bits, the largest difference from its original that
        comes of it; the other differences are from the network so rounded.
    """

    latency_before_s: float
    latency_after_s: float
    pytorch_latency_s: float | None
    engines: tuple[EngineResult, ...] = ()
    spread_s: dict[str, tuple[float, float]] = Field(default_factory=dict)
    doubtful: tuple[str, ...] = ()
    original: str = "PyTorch"
    outputs: tuple[OutputAgreement, ...] = ()
    max_abs_error: float
    max_abs_output: float
    rounding_error: float | None = None
    gpu: tuple[GpuState, ...] = ()


def compare(
    network: Network,
    original: Original,
    tuned: Path,
    measurer: Measurer,
    outputs: Sequence[OutputAgreement],
    tuned_s: Sequence[float],
    against: Sequence[str] = (),
    report: Callable[[str], None] = lambda stage: None,
    function: str = MAIN,
) -> Comparison:
    """Time both libraries, PyTorch and other engines on the same inputs, in turns that agree.

    The libraries run in a process of their own: TVM pins the threads of a process to cores,
    which would slow PyTorch down a hundredfold.

    Parameters
    ----------
    network
        The network.
    original, tuned
        Its original with the untuned library, and the tuned library.
    measurer
        Runs them; what is not ours runs on this machine alone, so beside a network there.
    outputs, tuned_s
        How the tuned network's outputs agree with the original's, and what each call took then: of
        a slow network, those count.
    against
        Names of the engines that were asked for.
    report
        Told what is being done.
    function
        Which one of the tuned library the network is.

    Raises
    ------
    MeasureError
        A library crashed or took too long.
    """
    setting = _setting(network, measurer)
    is_on_gpu = setting is not None and setting.device != "cpu"
    before_state = gpu_state() if is_on_gpu else None
    engines = [ENGINES[name] for name in against]
    with ScratchFolder() as folder, Rivals(network, original, setting, engines, report) as rivals:
        file = folder / "inputs"
        save_arrays(file, [*original.inputs, *network.state])
        before = Contestant(
            partial(_run, measurer, original.library, MAIN, file), is_yardstick=True
        )
        before.count(original.untuned_s)
        after = Contestant(partial(_run, measurer, tuned, function, file))
        after.count(tuned_s)
        report(f"comparing {network.name} with {rivals.names}")
        take_turns([before, after, *rivals.settings], _FIRST_TURNS)
        rivals.calm_down()
        take_turns([before, after, *rivals.last_settings], _MOST_TURNS)
    after_state = gpu_state() if is_on_gpu else None
    if (doubt := moved(before_state, after_state)) is not None:
        _log.warning("%s: %s", network.name, doubt)
    timed = {"untuned": before, "tuned": after, **rivals.best}
    return Comparison(
        latency_before_s=before.latency_s,
        latency_after_s=after.latency_s,
        pytorch_latency_s=timed[PYTORCH.title].latency_s if PYTORCH.title in timed else None,
        engines=tuple(map(_engine_result, rivals.engines)),
        spread_s={what: one.spread_s for what, one in timed.items()},
        doubtful=tuple(what for what, one in timed.items() if not one.is_settled),
        original=original.name,
        outputs=tuple(outputs),
        max_abs_error=largest_of(output.max_abs_error for output in outputs) or 0.0,
        max_abs_output=largest_of(output.max_abs_output for output in outputs) or 0.0,
        rounding_error=original.rounding_error,
        gpu=tuple(state for state in (before_state, after_state) if state is not None),
    )


def _setting(network: Network, measurer: Measurer) -> Setting | None:
    """Return what PyTorch and other engines run on beside a network; ``None`` if they cannot."""
    hardware = measurer.hardware
    if measurer.devices is not None:
        return None
    if hardware.kind == "cpu":
        return Setting(threads=hardware.num_cores)
    threads = len(os.sched_getaffinity(0))
    return Setting(threads=threads, device=hardware.kind, allow_tf32=network.precision == "tf32")


def _engine_result(rival: Rival) -> EngineResult:
    best = rival.best
    return EngineResult(
        name=rival.engine.name,
        title=rival.engine.title,
        latency_s=None if best is None else best.latency_s,
        max_abs_error=largest_of(output.max_abs_error for output in rival.outputs),
        problem=rival.problem if best is None else None,
    )


def _run(measurer: Measurer, library: Path, function: str, inputs: Path, secs: float) -> float:
    path = str(library.resolve())
    job = NetworkJob(path=path, function=function, inputs=str(inputs), secs=secs)
    outcome = measurer.run_job(job)
    if outcome.timing is None:
        raise MeasureError(f"the compiled network {library} does not run: {outcome.error}")
    return outcome.timing.run_secs[0]
