"""A program that is known to be good: where it fails, the machine is at fault.

A batch of which no program works says little about the programs: the disk may be full, the linker
gone. Before such a batch is written down, the canary's kernel goes the same way as they did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure.canary_kernels import cpu_kernels, gpu_kernels
from costlib.measure.config import Arguments, MeasureConfig, RunJob
from costlib.measure.measurement import Measurement
from costlib.schema import CONFIRMED, Status
from costlib.tvm_compat import quick_parsing, tvm

if TYPE_CHECKING:
    from costlib.measure.measurer import Measurer

_SECS = 60.0
_MEMORY_BYTES = 4 << 30


def known_good(hardware: Hardware) -> tuple[Any, Arguments]:
    """Return a module that builds and runs on sound hardware, and its arguments."""
    kernels = cpu_kernels(1) if hardware.kind == "cpu" else gpu_kernels()
    with quick_parsing():
        function = tvm.script.from_source(kernels.compute)
    mod = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    return mod, tuple(("float32", shape) for shape in kernels.matrices)


def check_machine(measurer: Measurer) -> None:
    """Build and run a program that is known to be good, as others are.

    Raises
    ------
    MeasureError
        It fails: the machine is at fault.
    """
    mod, arguments = known_good(measurer.hardware)
    path = measurer.server.folder / "known-good.so"
    limits = {"timeout_secs": _SECS, "memory_bytes": _MEMORY_BYTES}
    build = measurer.build_job(mod, path).model_copy(update=limits)
    config = MeasureConfig(
        repeats=1, repeat_secs=0, run_timeout_secs=_SECS, memory_bytes=_MEMORY_BYTES
    )
    error = measurer.server.work([build])[0].error
    what = "built"
    if error is None:
        run = RunJob(path=str(path), arguments=arguments, config=config)
        error = measurer.run_job(run).error
        what = "run"
    path.unlink(missing_ok=True)
    if error is not None:
        raise MeasureError(
            f"no program can be {what}, not even one that is known to be good: {error}; nothing is "
            "recorded of what failed: see to the machine (`costlib doctor`), then go on"
        )


def believable(finished: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return what was measured before the machine failed, without what failed just before that."""
    sound = (Status.OK, Status.INVALID)
    last = max((n for n, m in enumerate(finished, start=1) if m.status in sound), default=0)
    return tuple(finished[:last])


def confirmed(measurer: Measurer, measurements: Sequence[Measurement]) -> list[Measurement]:
    """Look into a batch that failed entirely.

    Returns
    -------
    list of Measurement
        As they were; failures say that a program that is known to be good ran meanwhile.

    Raises
    ------
    MeasureError
        It is the machine that fails.
    """
    tried = [m for m in measurements if m.status is not Status.INVALID]
    if not tried or any(m.status is Status.OK for m in tried):
        return list(measurements)
    check_machine(measurer)
    return [
        m if m.status is Status.INVALID else replace(m, error=f"{m.error}{CONFIRMED}")
        for m in measurements
    ]
