"""The TVM names outside its documented interface that costlib calls, one function each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.tvm_compat import ms, tvm


def estimate_flops(mod: Any) -> float:
    """Count the floating-point operations of an unscheduled module."""
    return float(tvm.s_tir.analysis.estimate_tir_flops(mod))


def argument_shapes(mod: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return (dtype, shape) of each argument of ``main``, results last."""
    infos = ms.arg_info.ArgInfo.from_prim_func(mod["main"])
    return tuple((str(info.dtype), tuple(int(n) for n in info.shape)) for info in infos)


def entry_argument_shapes(mod: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Like :func:`argument_shapes` for a scheduled module, with weights as it lays them out."""
    infos = ms.arg_info.ArgInfo.from_entry_func(mod, remove_preproc=True)
    return tuple((str(info.dtype), tuple(int(n) for n in info.shape)) for info in infos)


def module_to_json(mod: Any) -> str:
    """Serialise a module to TVM's JSON graph."""
    return str(tvm.ir.save_json(mod))


def module_from_json(text: str) -> Any:
    """Read a module written by :func:`module_to_json`."""
    return tvm.ir.load_json(text)


def trace_to_json(trace: Any) -> tuple[list[Any], list[Any]]:
    """Return a trace as plain (instructions, decisions) that ``json`` can write."""
    instructions, decisions = trace.as_json()
    return _plain(instructions), _plain(decisions)


def trace_from_json(instructions: Sequence[Any], decisions: Sequence[Any], schedule: Any) -> None:
    """Apply the instructions with the decisions to ``schedule``."""
    tvm.s_tir.schedule.Trace.apply_json_to_schedule([list(instructions), list(decisions)], schedule)


def build_library(mod: Any, target: Any, path: Path) -> None:
    """Compile a scheduled module to a shared library, the way MetaSchedule's builder does.

    Weight layout rewrites are left out: they happen once, ahead of time, and are not part
    of what a call costs.
    """
    mod = tvm.s_tir.transform.RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(mod)
    tvm.build(mod, target=target).export_library(str(path), fcompile=_link)


def _link(output: str, objects: Sequence[str], **_: Any) -> None:
    from costlib.tvm_compat.link import link_shared

    link_shared(Path(output), [Path(name) for name in objects])


def _plain(value: Any) -> Any:
    """Turn TVM's containers and constants into JSON's."""
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if isinstance(value, (list, tuple, tvm.ir.Array)):
        return [_plain(item) for item in value]
    if hasattr(value, "value"):
        return _plain(value.value)
    return json.loads(str(value))
