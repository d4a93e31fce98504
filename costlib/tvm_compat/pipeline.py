"""Passes of our own around TVM's pipeline from scheduled programs to machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm.tirx import compilation_pipeline

_NAME = "s_tir"


def install_passes(before: Sequence[Any] = (), after: Sequence[Any] = ()) -> None:
    """Let every program that is compiled from now on go through these passes as well.

    Parameters
    ----------
    before, after
        Passes over a module, before and after TVM's own and those that are installed already.
    """
    stock = compilation_pipeline.PIPELINE_MAP[_NAME]

    def pipeline() -> Any:
        lower, host, device = stock()
        return tvm.ir.transform.Sequential([*before, lower, *after]), host, device

    compilation_pipeline.PIPELINE_MAP[_NAME] = pipeline
