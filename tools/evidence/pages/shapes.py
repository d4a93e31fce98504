"""Networks in one file for all shapes of their ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.in_ranges import AtShape, InRange
from tools.evidence.markdown import between, pictures, share, table, times
from tools.evidence.means import geometric_mean
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page, Pictures
from tools.evidence.provenance import machine, measured
from tools.evidence.range_curves import range_curves

_HEAD = (
    *("network", "ranges", "machine", "shapes", "wrong", "trials", "of one shape's"),
    *("of networks tuned alone", "range", "of PyTorch", "range"),
)
_COMPARED = (
    "A network is tuned for ranges of its dimensions, which makes one file, and then called with "
    "random shapes of these. At each its outputs are compared with PyTorch's, and it is timed in "
    "turns with PyTorch; padding inputs and cropping outputs count. For a random sample of the "
    "shapes a network is tuned for that shape alone, with 16 trials a task. Dotted lines in the "
    "picture stand at the points of a range that were compiled."
)


def parts() -> list[str]:
    """Return the page."""
    rows = _rows()
    return [
        pictures(dict.fromkeys(_pictures(), "milliseconds over the extents")),
        _COMPARED,
        origin("shapes"),
        table(
            _HEAD,
            [_summary(row) for row in rows],
        ),
        *(part for row in rows for part in _shapes(row)),
        *measured("shapes"),
    ]


def _rows() -> list[InRange]:
    return [InRange.model_validate(row) for row in read_result("shapes").get("networks", [])]


def _dims(row: InRange) -> str:
    return ", ".join(f"{name}={low}:{high}" for name, (low, high) in row.dims.items())


def _summary(row: InRange) -> list[str | int]:
    return [
        f"`{row.network}`",
        _dims(row),
        machine(row.hardware),
        len(row.shapes),
        row.wrong,
        row.trials,
        times(row.trials / row.trials_of_one),
        *_means(row.of_alone),
        *_means(row.of_pytorch),
    ]


def _means(ratios: Sequence[float]) -> list[str]:
    if not ratios:
        return ["", ""]
    return [share(geometric_mean(ratios)), between(min(ratios), max(ratios))]


def _shapes(row: InRange) -> list[str]:
    return [
        f"## {row.network}, {_dims(row)}",
        f"{len(row.shapes)} of {row.drawn} shapes; a random sample of {row.sampled} was tuned "
        "alone. Latencies are in milliseconds; *served by* is the point that computes the shape.",
        origin("shapes", hardware=row.hardware),
        table(
            ["shape", "served by", "in the file", "alone", "PyTorch", "of alone", "difference"],
            [_shape(shape) for shape in sorted(row.shapes, key=lambda one: [*one.sizes.values()])],
        ),
    ]


def _shape(shape: AtShape) -> list[str]:
    return [
        _sizes(shape.sizes),
        _sizes(shape.served_by),
        f"{1e3 * shape.called_s:.3g}",
        "" if shape.alone_s is None else f"{1e3 * shape.alone_s:.3g}",
        f"{1e3 * shape.pytorch_s:.3g}",
        "" if shape.of_alone is None else f"{shape.of_alone:.2f}",
        shape.fault or ("" if shape.max_abs_error is None else f"{shape.max_abs_error:.1e}"),
    ]


def _sizes(sizes: dict[str, int]) -> str:
    return " x ".join(map(str, sizes.values()))


def _pictures() -> Pictures:
    return {_picture(row): partial(_drawn, row) for row in _rows() if row.shapes}


def _picture(row: InRange) -> str:
    words = f"{row.network} {_dims(row)} {machine(row.hardware)}"
    return f"shapes-{re.sub(r'[^a-z0-9]+', '-', words.lower())}.svg"


def _drawn(row: InRange) -> Figure:
    return range_curves(row, f"{row.network}, {_dims(row)}, on {machine(row.hardware)}")


PAGE = Page("shapes", "Shapes in ranges", parts, ("shapes",), _pictures)
