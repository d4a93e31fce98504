"""Tensor intrinsics of targets that this machine is not, for traces that name them."""

from __future__ import annotations

import functools
import json
from typing import Any

from costlib.tvm_compat import load_intrinsics, tvm


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

    register_riscv_intrinsics(tvm.target.Target(json.loads(target)))
