"""What building for a GPU or for another processor takes, and what of it this machine has."""

from __future__ import annotations

from collections.abc import Iterator

from costlib.errors import CostlibError, TargetError
from costlib.hardware import Hardware
from costlib.measure.emulator import what_is_missing
from costlib.tvm_compat.cuda import find_compiler, why_no_runtime
from costlib.tvm_compat.cuda_driver import driver_problem, needed_cuda
from costlib.tvm_compat.link import cross_tool, how_to_cross_link, is_foreign

Words = tuple[str, str, str, bool]
"""Check, value, advice and whether it is fatal, as of a :class:`costlib.measure.doctor.Finding`."""

_SIMULATE = "until then: tune --simulate"


def findings(hardware: Hardware, *, on_device: bool) -> Iterator[Words]:
    """Look at what it takes to build for some hardware; if ``on_device``, to measure on it, too."""
    try:
        hardware.tvm_target()
        yield "code generation", f"TVM has it for {hardware.family}", "", False
    except TargetError as error:
        yield "code generation", "missing", str(error), True
    if hardware.kind == "cuda":
        yield from _cuda(on_device)
    elif is_foreign(triple := str(hardware.target.get("mtriple", ""))):
        yield from _foreign(hardware.family, triple)


def _cuda(on_device: bool) -> Iterator[Words]:
    try:
        yield "CUDA compiler", find_compiler(), "", False
    except CostlibError as error:
        yield "CUDA compiler", "missing", f"{error}; without it programs stay source", False
    if not on_device:
        return
    problem = driver_problem()
    yield "NVIDIA driver", "unusable" if problem else "fine", _advice(problem), False
    runtime = why_no_runtime()
    needs = f"needs CUDA {needed_cuda()}" if needed_cuda() else "of unknown version"
    found = f"does not load, {needs}" if runtime else f"loads, {needs}"
    yield "TVM's CUDA runtime", found, runtime or "", False
    try:
        yield "GPU", Hardware.local_cuda().hardware_id, "", False
    except TargetError:
        yield "GPU", "none", f"measure where there is one; {_SIMULATE}", False


def _advice(problem: str | None) -> str:
    return f"{problem}; {_SIMULATE}" if problem else ""


def _foreign(machine: str, triple: str) -> Iterator[Words]:
    linker = cross_tool("ld", triple)
    advice = f"{how_to_cross_link(triple)}; without it networks stay object files"
    yield "cross linker", linker or "missing", "" if linker else advice, False
    missing = what_is_missing(triple)
    advice = f"{missing}; without it tuned networks are not compared" if missing else ""
    yield "emulator", "missing" if missing else f"qemu-{machine}", advice, False
    yield "device", f"this machine is no {machine}", "measure on a fleet (docs/boards.md)", False
