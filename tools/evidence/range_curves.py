"""Latency over the shapes of a range: in one file, tuned for each alone, and in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costlib.report.figures import COMPARED, finish, panel, plain_ticks, tip, whole_ticks
from costlib.report.units import plain
from tools.evidence.in_ranges import AtShape, InRange

_HEIGHT = 2.4
_SPACE = 1.05


def range_curves(row: InRange, title: str) -> Figure:
    """Draw the milliseconds of each shape over its extent, or over the product of its extents.

    Shapes of a single dimension are joined by lines, and what serves them is marked by lines that
    stand upright.
    """
    figure, axes = panel(_HEIGHT)
    shapes = sorted(row.shapes, key=_size)
    alone = [(shape, shape.alone_s) for shape in shapes if shape.alone_s is not None]
    joined = "-" if len(row.dims) == 1 else ""
    if joined:
        for size in sorted({math.prod(shape.served_by.values()) for shape in shapes}):
            axes.axvline(size, **COMPARED | {"lw": 0.5, "ls": ":"})
    _curve(axes, [(one, one.pytorch_s) for one in shapes], f"o{joined}", "C1", "PyTorch")
    _curve(axes, [(one, one.called_s) for one in shapes], f"o{joined}", "C0", "one file")
    _curve(axes, alone, "D", "C2", "tuned for this shape alone")
    top = _SPACE * max(max(one.pytorch_s, one.called_s) for one in shapes)
    axes.set(ylim=(0, 1e3 * top), xlabel=" x ".join(row.dims), ylabel="milliseconds")
    whole_ticks(axes.xaxis)
    plain_ticks(axes.yaxis)
    finish(axes, title)
    return figure


def _curve(
    axes: Axes, points: Sequence[tuple[AtShape, float]], style: str, colour: str, name: str
) -> None:
    if not points:
        return
    sizes, taken_ms = [_size(shape) for shape, _ in points], [1e3 * secs for _, secs in points]
    (line,) = axes.plot(sizes, taken_ms, style, color=colour, ms=3, lw=1, label=name)
    pairs = zip(points, taken_ms, strict=True)
    tip(line, *(f"{_named(shape)}, {name}: {plain(ms)} ms" for (shape, _), ms in pairs))


def _size(shape: AtShape) -> int:
    return math.prod(shape.sizes.values())


def _named(shape: AtShape) -> str:
    return ", ".join(f"{name}={extent}" for name, extent in shape.sizes.items())
