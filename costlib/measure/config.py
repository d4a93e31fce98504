"""How programs are measured, and what the measuring processes tell each other."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from costlib.canary_times import CanaryTimes
from costlib.frozen import FrozenStrict
from costlib.measure.correction import corrected_latency
from costlib.tvm_compat.cubin import CompiledKernel

Arguments = tuple[tuple[str, tuple[int, ...]], ...]
"""(dtype, shape) of each argument, results last."""

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class MeasureConfig(FrozenStrict):
    """Settings of a measurement. The defaults suit CPUs on machines shared with others.

    Attributes
    ----------
    repeats
        Timed repeats of a program that may still matter.
    repeat_secs
        A repeat calls the program as often as fits into this many seconds, at least once, and
        counts its fastest call.
    race_factor
        A program whose first calls take longer than this times the best latency known for
        its task is not repeated. Infinity repeats them all.
    max_drift
        A repeat counts if the compute canary before and after it agree to this share;
        otherwise it is taken again.
    max_retakes
        How many repeats of one program may be taken again.
    build_timeout_secs, run_timeout_secs
        Time limits of one build and of one run, repeats included.
    memory_bytes
        Memory that a build or a run may take on top of what TVM itself uses; of the host's, and
        not limited for runs on a GPU, whose driver reserves far more than it uses.
    flush_cache
        Empty the CPU caches before each repeat, which then calls the program once.
    check_output
        Compare the program's output with the unscheduled program's.
    cold_weights
        Let the weights of a program come from memory, where those of its network do not fit into
        the last cache: its calls take turns with copies of them. That holds in a tuning run; what
        is measured without a network finds them in the cache.
    """

    repeats: int = Field(3, ge=1)
    repeat_secs: float = Field(0.02, ge=0)
    race_factor: float = Field(2.0, ge=1)
    max_drift: float = Field(0.05, gt=0)
    max_retakes: int = Field(3, ge=0)
    build_timeout_secs: float = Field(20.0, gt=0)
    run_timeout_secs: float = Field(10.0, gt=0)
    memory_bytes: int = Field(4 << 30, gt=0)
    flush_cache: bool = False
    check_output: bool = False
    cold_weights: bool = True


class BuildJob(FrozenStrict):
    """Compile a module (TVM JSON) to the library at ``path``; ``target`` replaces the server's.

    With ``leave_source``, what is for CUDA stays source: no compiler is asked for.
    """

    kind: Literal["build"] = "build"
    mod_json: str
    path: str
    target: dict[str, Any] | None = None
    keep_layout: bool = False
    leave_source: bool = False
    timeout_secs: float
    memory_bytes: int


class ColdWeights(FrozenStrict):
    """Which ``arguments`` come from memory; copies of them, ``nbytes`` in all, take turns."""

    arguments: tuple[int, ...]
    nbytes: int


class RunJob(FrozenStrict):
    """Run the library at ``path``; race it against ``best_s``, the best latency known.

    ``reference`` is the state of the machine that ``best_s`` was corrected to. Without ``cold`` the
    program is called with the same arguments each time.
    """

    kind: Literal["run"] = "run"
    path: str
    arguments: Arguments
    config: MeasureConfig
    best_s: float | None = None
    reference: CanaryTimes | None = None
    cold: ColdWeights | None = None


class CheckJob(FrozenStrict):
    """Run a library and, on the CPU, a reference on the same inputs; compare their outputs."""

    kind: Literal["check"] = "check"
    path: str
    reference_path: str
    arguments: Arguments
    timeout_secs: float
    memory_bytes: int


class NetworkJob(FrozenStrict):
    """Call a function of a compiled network for ``secs`` seconds and report its fastest call.

    ``inputs`` is a file of :func:`costlib.arrays.save_arrays` with the arguments in order; with
    ``outputs``, the results are written to such a file. Without ``secs`` it is called once.
    """

    kind: Literal["network"] = "network"
    path: str
    function: str = "main"
    inputs: str
    outputs: str | None = None
    secs: float
    timeout_secs: float = 120.0
    memory_bytes: int = 16 << 30


class TraceJob(FrozenStrict):
    """Call a compiled network for ``secs`` seconds and note what each of its kernels takes.

    ``inputs`` is as for a :class:`NetworkJob`. To ``times`` one array is written by
    :func:`costlib.arrays.save_arrays`: float64 `calls x (kernels + 1)`, in seconds, the last column
    of which is what a call takes outside the kernels.
    """

    kind: Literal["trace"] = "trace"
    path: str
    inputs: str
    times: str
    secs: float
    timeout_secs: float = 120.0
    memory_bytes: int = 16 << 30


class CanaryJob(FrozenStrict):
    """Time the canaries alone, ``samples`` times."""

    kind: Literal["canary"] = "canary"
    samples: int
    timeout_secs: float = 60.0
    memory_bytes: int = 1 << 30


Job = BuildJob | RunJob | CheckJob | NetworkJob | TraceJob | CanaryJob


class Timing(FrozenStrict):
    """What running a program gave; all lists have one entry per repeat.

    Attributes
    ----------
    run_secs
        Seconds of the program's fastest call in the repeat.
    canary_compute, canary_memory
        Seconds of one call of each canary, the better of before and after the repeat.
    raced
        Whether repeats were saved.
    """

    run_secs: tuple[Seconds, ...]
    canary_compute: tuple[Seconds, ...] = Field(min_length=1)
    canary_memory: tuple[Seconds, ...] = Field(min_length=1)
    raced: bool

    @property
    def canary(self) -> CanaryTimes:
        """What the canaries took at their best."""
        return CanaryTimes(compute_s=min(self.canary_compute), memory_s=min(self.canary_memory))

    def latency_s(self, reference: CanaryTimes) -> float:
        """Return the program's latency in the reference state, in seconds."""
        return corrected_latency(self.run_secs, self.canary_compute, self.canary_memory, reference)


class Outcome(FrozenStrict):
    """What became of a job.

    Attributes
    ----------
    error
        One line on what went wrong, or ``None``.
    fault
        One line on the fault of the machine that it certainly was, and how to mend that.
    timed_out
        Whether it was the time limit.
    elapsed_secs
        Wall-clock seconds that the job took.
    timing
        What a successful :class:`RunJob` measured.
    kernels
        What the kernels of a successful :class:`BuildJob` for a GPU take of it.
    """

    error: str | None = None
    fault: str | None = None
    timed_out: bool = False
    elapsed_secs: float = 0.0
    timing: Timing | None = None
    kernels: tuple[CompiledKernel, ...] = ()
