"""Operators that write a tensor into another one, at places that are known beforehand."""

from __future__ import annotations

import math
from typing import Any

import torch

from costlib.tvm_compat import relax
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


def _written(name: str) -> Converter:
    """Let PyTorch write numbers of elements instead of them, and take the elements so."""

    def convert(g: Graph, x: Any, source: Any, *settings: Any) -> Any:
        x, source = g.tensor(x), g.tensor(source, dtype_of(g.out))
        kept = torch.arange(math.prod(shape_of(x))).reshape(shape_of(x))
        new = kept.numel() + torch.arange(math.prod(shape_of(source))).reshape(shape_of(source))
        places = getattr(torch, name)(kept, new, *settings)
        both = [g.emit(R.reshape(tensor, [-1])) for tensor in (x, source)]
        return R.take(g.emit(R.concat(both, 0)), g.tensor(places), axis=0, mode="clip")

    return convert


for _name in ("select_scatter", "diagonal_scatter", "as_strided_scatter"):
    CONVERTERS[f"aten.{_name}"] = _written(_name)


@converts("slice_scatter")
def _slice_scatter(
    g: Graph,
    x: Any,
    source: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    """Take whole rows of the two, one after the other."""
    x, source = g.tensor(x), g.tensor(source, dtype_of(g.out))
    axis = dim % len(shape_of(x))
    size = shape_of(x)[axis]
    places = torch.arange(size)
    written = torch.arange(size)[slice(start, end, step)]
    places[written] = size + torch.arange(len(written))
    both = g.emit(R.concat([x, source], axis))
    return R.take(both, g.tensor(places), axis=axis, mode="clip")
