"""A network in one file for all shapes of its ranges, beside itself tuned for each shape alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict

from tools.evidence.means import geometric_mean


class AtShape(BaseModel):
    """A shape of the ranges.

    Attributes
    ----------
    sizes, served_by
        Extents of the dimensions, and those of the point that computes it.
    range_s, handling_s
        Seconds of the function in the file, and of choosing it, padding and cropping.
    pytorch_s
        Seconds of a call in PyTorch.
    max_abs_error, fault
        Largest difference from PyTorch, and what is wrong; ``None`` if nothing is.
    alone_s, alone_trials
        Seconds of the network that is tuned for this shape alone, and its trials; ``None`` of
        shapes that are not in the sample for which there is one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sizes: dict[str, int]
    served_by: dict[str, int]
    range_s: float
    handling_s: float
    pytorch_s: float
    max_abs_error: float | None
    fault: str | None = None
    alone_s: float | None = None
    alone_trials: int | None = None

    @property
    def called_s(self) -> float:
        """Seconds of a call of the file, all in all."""
        return self.range_s + self.handling_s

    @property
    def of_alone(self) -> float | None:
        """The throughput, relative to the network that is tuned for the shape alone."""
        return None if self.alone_s is None else self.alone_s / self.called_s


class InRange(BaseModel):
    """A network with ranges.

    Attributes
    ----------
    network, dims
        Its name, and the smallest and largest extent of each dimension.
    hardware
        Id of what it was measured on.
    trials
        Programs measured for the file, all points together.
    trials_of_one
        What a network of the largest shape alone is given.
    drawn, sampled
        How many random shapes there are to measure, and for how many of these, drawn at random,
        a network is tuned alone.
    shapes
        Those that are measured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    network: str
    dims: dict[str, tuple[int, int]]
    hardware: str
    trials: int
    trials_of_one: int
    drawn: int
    sampled: int
    shapes: tuple[AtShape, ...] = ()

    @property
    def case(self) -> tuple[str, str, str]:
        """Which network and ranges it is, and on which machine."""
        return self.network, str(self.dims), self.hardware

    @property
    def of_alone(self) -> list[float]:
        """The throughput at each shape of the sample, relative to the network tuned for it."""
        return [ratio for shape in self.shapes if (ratio := shape.of_alone) is not None]

    @property
    def of_pytorch(self) -> list[float]:
        """The throughput at each shape, relative to PyTorch's."""
        return [shape.pytorch_s / shape.called_s for shape in self.shapes]

    @property
    def wrong(self) -> int:
        """At how many shapes it computes something else than PyTorch."""
        return sum(shape.fault is not None for shape in self.shapes)


def summarise_ranges(rows: Iterable[InRange]) -> dict[str, Any]:
    """Return the result file: each network, and its means over the shapes."""
    rows = list(rows)
    return {
        "summary": [
            {
                "network": row.network,
                "of_alone": geometric_mean(row.of_alone) if row.of_alone else None,
                "of_pytorch": geometric_mean(row.of_pytorch) if row.shapes else None,
                "trials_ratio": round(row.trials / row.trials_of_one, 3),
                "wrong": row.wrong,
            }
            for row in rows
        ],
        "networks": [row.model_dump(mode="json") for row in rows],
    }
