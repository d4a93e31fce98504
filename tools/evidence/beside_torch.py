"""Tuned networks beside PyTorch: what is measured of each, and all of them as one table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict
from scipy.stats import gmean

from tools.evidence.store import Record


class SlowTask(BaseModel):
    """One of the tasks that take most of a tuned network's time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    calls: int
    ms: float
    gflops_per_s: float


class BesideTorch(Record):
    """A tuned network, PyTorch and ``torch.compile``, measured in turns.

    Attributes
    ----------
    version
        The network in the layout that was the fastest.
    trials, minutes
        What tuning it in all layouts took.
    tuned_s, pytorch_s, compiled_s
        Medians over the turns.
    tuned_range_s, pytorch_range_s, compiled_range_s
        The lowest and the highest of them.
    not_compiled
        Why ``torch.compile`` failed, if it did.
    """

    columns: ClassVar[pl.Schema] = pl.Schema(
        {
            "network": pl.String(),
            "version": pl.String(),
            "hardware": pl.String(),
            "bundle": pl.String(),
            "trials": pl.Int32(),
            "minutes": pl.Float64(),
            "tuned_s": pl.Float64(),
            "pytorch_s": pl.Float64(),
            "compiled_s": pl.Float64(),
            "tuned_range_s": pl.List(pl.Float64()),
            "pytorch_range_s": pl.List(pl.Float64()),
            "compiled_range_s": pl.List(pl.Float64()),
            "not_compiled": pl.String(),
            "slowest_tasks": pl.List(
                pl.Struct(
                    {
                        "task": pl.String(),
                        "calls": pl.Int32(),
                        "ms": pl.Float64(),
                        "gflops_per_s": pl.Float64(),
                    }
                )
            ),
        }
    )

    network: str
    version: str
    hardware: str
    bundle: str
    trials: int
    minutes: float
    tuned_s: float
    pytorch_s: float
    compiled_s: float | None = None
    tuned_range_s: tuple[float, float]
    pytorch_range_s: tuple[float, float]
    compiled_range_s: tuple[float, float] | None = None
    not_compiled: str | None = None
    slowest_tasks: tuple[SlowTask, ...]

    @property
    def name(self) -> str:
        """The network."""
        return self.network

    @property
    def others_s(self) -> dict[str, float]:
        """Seconds of what it was measured beside."""
        others = {"pytorch": self.pytorch_s, "compiled": self.compiled_s}
        return {name: seconds for name, seconds in others.items() if seconds is not None}

    def rows(self) -> list[dict[str, Any]]:
        """Return its row."""
        return [self.model_dump()]

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Return the network of a row."""
        (row,) = rows
        return cls(**{name: row[name] for name in cls.columns})


def summarise_torch(networks: Iterable[BesideTorch]) -> dict[str, Any]:
    """Put the networks of each machine into a table: PyTorch's latency by the tuned network's."""
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for found in networks:
        tables[found.hardware].append(
            {
                "network": found.network,
                "version": found.version,
                "trials": found.trials,
                "tuned_ms": round(1e3 * found.tuned_s, 3),
                **{f"{name}_ms": round(1e3 * s, 3) for name, s in found.others_s.items()},
                "speedup": {
                    name: round(s / found.tuned_s, 3) for name, s in found.others_s.items()
                },
                "slowest_tasks": [task.model_dump() for task in found.slowest_tasks],
            }
        )
    return {"machines": [_machine(hardware, rows) for hardware, rows in tables.items()]}


def _machine(hardware: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    speedups = {
        other: [row["speedup"][other] for row in rows if other in row["speedup"]]
        for other in ("pytorch", "compiled")
    }
    return {
        "hardware": hardware,
        "geometric_mean": {k: round(float(gmean(v)), 3) for k, v in speedups.items()},
        "median": {k: round(float(np.median(v)), 3) for k, v in speedups.items()},
        "not_slower_than_pytorch": sum(one >= 1 for one in speedups["pytorch"]),
        "networks": rows,
    }
