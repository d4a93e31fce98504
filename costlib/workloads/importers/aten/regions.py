"""Operators of ``torchvision``, of regions of images."""

from __future__ import annotations

from typing import Any

import torch

from costlib.tvm_compat import relax
from costlib.workloads.importers.aten.graph import Converter, Graph, dtype_of

R = relax.op


def _roi_align(
    g: Graph,
    x: Any,
    regions: Any,
    scale: float,
    height: int,
    width: int,
    samples: int,
    aligned: bool,
) -> Any:
    """Move aligned regions by half a pixel, which TVM forgets."""
    dtype = dtype_of(g.out)
    x, regions = g.tensor(x, dtype), g.tensor(regions, dtype)
    if aligned:
        half = torch.tensor([0.0] + 4 * [0.5 / scale], dtype=getattr(torch, dtype))
        regions = g.emit(R.subtract(regions, g.tensor(half)))
    return R.vision.roi_align(x, regions, (height, width), scale, samples, aligned)


CONVERTERS: dict[str, Converter] = {"torchvision.roi_align": _roi_align}
