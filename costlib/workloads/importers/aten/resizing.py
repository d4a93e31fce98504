"""Resizing that averages over what it leaves out."""

from __future__ import annotations

from typing import Any

import torch

from costlib.tvm_compat import relax
from costlib.workloads.importers.aten.elementwise import computed_in
from costlib.workloads.importers.aten.graph import (
    Converter,
    Graph,
    dtype_of,
    registering,
    shape_of,
)

CONVERTERS: dict[str, Converter] = {}
converts = registering(CONVERTERS)

R = relax.op


def _antialiased(name: str) -> Converter:
    """Multiply with the weights of each axis, which PyTorch tells by resizing unit vectors."""
    function = getattr(torch.ops.aten, name).default

    def convert(
        g: Graph,
        x: Any,
        size: Any,
        align_corners: bool,
        height_scale: float | None = None,
        width_scale: float | None = None,
    ) -> Any:
        out = dtype_of(g.out)
        wide = computed_in(out)
        x = g.tensor(x, wide)
        rows, columns = shape_of(x)[-2:]
        new_rows, new_columns = shape_of(g.out)[-2:]
        kind = getattr(torch, wide)
        unit = torch.eye(rows, dtype=kind)[None, None]
        down = function(unit, [new_rows, rows], align_corners, height_scale, None)[0, 0]
        unit = torch.eye(columns, dtype=kind)[None, None]
        across = function(unit, [columns, new_columns], align_corners, None, width_scale)[0, 0]
        narrow = g.emit(R.matmul(x, g.tensor(across)))
        return g.cast(g.emit(R.matmul(g.tensor(down), narrow)), out)

    return convert


for _name in ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"):
    CONVERTERS[f"aten.{_name}"] = _antialiased(_name)
