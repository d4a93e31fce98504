"""The TVM names outside its documented interface that costlib calls, one function each."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_snake

from costlib.tvm_compat import load_intrinsics, ms, quick_parsing, tvm
from costlib.tvm_compat.cubin import CompiledKernel, compiled_kernels
from costlib.tvm_compat.cuda import binaries_kept, check_compiles, find_compiler
from costlib.tvm_compat.link import is_foreign, link_shared
from costlib.tvm_compat.onednn import calls_onednn, compiled_calls

derived_object = tvm.ir.utils.derived_object
"""Makes a Python subclass of a MetaSchedule ``Py...`` class usable from C++."""


def estimate_flops(mod: Any) -> float:
    """Count the floating-point operations of an unscheduled module; 0 if TVM cannot."""
    try:
        return float(tvm.s_tir.analysis.estimate_tir_flops(mod))
    except (RuntimeError, TypeError, ValueError):
        return 0.0


def argument_shapes(mod: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return (dtype, shape) of each argument of ``main``, results last."""
    return _shapes(ms.arg_info.ArgInfo.from_prim_func(mod["main"]))


def entry_argument_shapes(mod: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Like :func:`argument_shapes` for a scheduled module, with weights as it lays them out."""
    return _shapes(ms.arg_info.ArgInfo.from_entry_func(mod, remove_preproc=True))


def _shapes(infos: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((str(info.dtype), tuple(int(n) for n in info.shape)) for info in infos)


def module_to_json(mod: Any) -> str:
    """Serialise a module to TVM's JSON graph."""
    return str(tvm.ir.save_json(mod))


def module_from_json(text: str) -> Any:
    """Read a module that :func:`module_to_json` of this very TVM wrote.

    ``tvm.ir.load_json`` would first look for traces of older releases, which takes longer
    than the reading.
    """
    from tvm_ffi.serialization import from_json_graph_str

    return from_json_graph_str(text)


def trace_to_json(trace: Any) -> tuple[list[Any], list[Any]]:
    """Return a trace as plain (instructions, decisions) that ``json`` can write."""
    instructions, decisions = trace.as_json()
    return plain(instructions), plain(decisions)


def trace_from_json(instructions: Sequence[Any], decisions: Sequence[Any], schedule: Any) -> None:
    """Apply the instructions with the decisions to ``schedule``."""
    tvm.s_tir.schedule.Trace.apply_json_to_schedule([list(instructions), list(decisions)], schedule)


def schedule_steps(schedule: Any) -> list[str]:
    """Return what was done to a schedule, a line of Python each."""
    return [str(line) for line in schedule.trace.simplified(remove_postproc=False).as_python()]


def build_library(
    mod: Any, target: Any, path: Path, *, keep_layout: bool = False, leave_source: bool = False
) -> tuple[CompiledKernel, ...]:
    """Compile a scheduled module to a shared library, the way MetaSchedule's builder does.

    Weight layout rewrites are left out: they happen once, ahead of time, and are not part of
    what a call costs. With ``keep_layout`` they stay in, and the library takes the same
    arguments as the unscheduled program. Machine code of another kind of machine is left an
    object file: it is linked there.

    Raises
    ------
    EnvironmentMismatchError
        The target is CUDA and no CUDA compiler is installed. No GPU is needed.
    """
    if not keep_layout:
        mod = tvm.s_tir.transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(mod)
    triple = str(target.attrs.get("mtriple", ""))
    finish = _keep_object if is_foreign(triple) else link_shared
    # Here, and not where TVM would: whoever removes the library's folder removes this, too.
    with tempfile.TemporaryDirectory(dir=path.parent) as objects:
        built, kernels = _build(mod, target, leave_source)
        addons = [compiled_calls(Path(objects))] if calls_onednn(mod) else []
        built.export_library(str(path), fcompile=finish, addons=addons, workspace_dir=objects)
    return kernels


def _build(mod: Any, target: Any, leave_source: bool) -> tuple[Any, tuple[CompiledKernel, ...]]:
    if target.kind.name != "cuda":
        return tvm.build(mod, target=target), ()
    if not leave_source:
        find_compiler()
    with target, binaries_kept() as binaries:  # TVM's call-back takes the architecture from it.
        library = tvm.build(mod, target=target)
        if not leave_source:
            check_compiles(library, target)
    return library, tuple(kernel for binary in binaries for kernel in compiled_kernels(binary))


def _keep_object(output: str, objects: Sequence[str], **_: Any) -> None:
    (only,) = objects
    shutil.copyfile(only, output)


def plain(value: Any) -> Any:
    """Turn TVM's containers and constants into JSON's."""
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if isinstance(value, (list, tuple, tvm.ir.Array)):
        return [plain(item) for item in value]
    if hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "value"):
        return plain(value.value)
    return json.loads(str(value))


def mutators(context: Any) -> dict[str, tuple[Any, float]]:
    """Return the mutators of a ``TuneContext``: direction -> (mutator, stock probability).

    A direction is the mutator's name in snake case, e.g. ``tile_size`` or ``compute_location``.
    """
    return {
        to_snake(type(mutator).__name__.removeprefix("Mutate")): (mutator, float(probability))
        for mutator, probability in context.space_generator.mutator_probs.items()
    }


def mutate_trace(mutator: Any, trace: Any, seed: int) -> Any | None:
    """Apply a mutator with a seed (its Python method takes none); ``None`` if it cannot."""
    from tvm.s_tir.meta_schedule import _ffi_api

    return _ffi_api.MutatorApply(mutator, trace, seed)


def structural_key(mod: Any) -> int:
    """Return a key of a module's structure, for dictionaries of this process."""
    import tvm_ffi

    return int(tvm_ffi.structural_hash(mod))


@contextlib.contextmanager
def main_function(builder: Any, params: Sequence[Any]) -> Iterator[None]:
    """Build ``main`` with a ``relax.BlockBuilder``, which complains if it is left half done."""
    with builder.function("main", list(params)):
        try:
            yield
        except BaseException:
            builder._end_block()
            raise


def commit_program(
    database: Any, mod: Any, target: Any, latency_s: float, schedule: Any | None = None
) -> None:
    """Put a program of a module into a MetaSchedule database; the module as it is if no schedule.

    The schedule is one that has been postprocessed. A module without blocks, as TVM has for
    scattering, has no schedule at all, and is what it is without a record.
    """
    if schedule is None:
        schedule = tvm.s_tir.Schedule(mod, error_render_level="none")
        try:
            schedule.get_sblock("root")  # A record without any instruction counts as invalid.
        except RuntimeError:
            return
    record = ms.database.TuningRecord(
        schedule.trace,
        database.commit_workload(mod),
        [latency_s],
        target,
        ms.arg_info.ArgInfo.from_prim_func(mod["main"]),
    )
    database.commit_tuning_record(record)


def register_intrinsics(target: dict[str, Any]) -> None:
    """Register the tensor intrinsics that traces for a target may name.

    Those of RISC-V depend on the width of its vectors; they are made for each target.
    """
    load_intrinsics(target["kind"], *target.get("keys", ()))
    if str(target.get("mtriple", "")).startswith("riscv"):
        load_intrinsics("riscv_cpu")
        _register_riscv(json.dumps(target, sort_keys=True))


@functools.cache
def _register_riscv(target: str) -> None:
    from tvm.s_tir.tensor_intrin.riscv_cpu import register_riscv_intrinsics

    with quick_parsing():
        register_riscv_intrinsics(tvm.target.Target(json.loads(target)))


def script_modules() -> dict[str, Any]:
    """Return what ``I``, ``T`` and ``R`` stand for in TVMScript."""
    from tvm.script.parser import ir
    from tvm.script.parser import relax as relax_script
    from tvm.script.parser import tirx as tir_script

    return {"I": ir, "T": tir_script, "R": relax_script}
