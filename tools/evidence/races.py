"""Races: what each side measured, and how fast its best programs were after each trial."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from costlib.arrays import Floats
from tools.evidence.store import Record

RACES = pl.Schema(
    {
        "kind": pl.String(),
        "what": pl.String(),
        "seed": pl.Int32(),
        "hardware": pl.String(),
        "bundle": pl.String(),
        "side": pl.String(),
        "settings": pl.String(),
        "tasks": pl.List(
            pl.Struct(
                {
                    "name": pl.String(),
                    "workload_id": pl.String(),
                    "weight": pl.Int32(),
                    "flops": pl.Float64(),
                }
            )
        ),
        "trials": pl.Int32(),
        "active_s": pl.Float64(),
        "measure_s": pl.Float64(),
        "trial_task": pl.List(pl.Int32()),
        "trial_latency_s": pl.List(pl.Float64()),
        "trial_elapsed_s": pl.List(pl.Float64()),
        "again_trial": pl.List(pl.Int32()),
        "again_latency_s": pl.List(pl.Float64()),
        "details": pl.String(),
    }
)
"""A row a side of a race; ``settings`` and ``details`` are JSON."""


class RacedTask(BaseModel):
    """A task of a race; ``weight`` is how often the network calls it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    workload_id: str
    weight: int
    flops: float


class Side(BaseModel):
    """What one side of a race measured.

    Attributes
    ----------
    trials
        Index of the task, latency in seconds or ``None``, and the seconds that the side had spent
        when it was known, of each.
    again
        Index among the trials, and latency in seconds when it was measured again after the race,
        of those that were the best for a while.
    active_s
        All seconds that the side spent.
    measure_s
        Those of building and running.
    settings
        What the search was told that differs from its defaults, where that was noted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trials: tuple[tuple[int, float | None, float], ...]
    again: tuple[tuple[int, float], ...] | None = None
    active_s: float
    measure_s: float
    settings: dict[str, Any] | None = None

    @property
    def overhead_s(self) -> float:
        """Seconds a trial that were neither building nor running."""
        return (self.active_s - self.measure_s) / len(self.trials)

    @property
    def seconds(self) -> float:
        """All seconds a trial."""
        return self.active_s / len(self.trials)


class Race(Record):
    """Sides that took turns at the same tasks.

    Attributes
    ----------
    kind
        The part of the benchmark.
    what
        What was raced: a network, a network and the rank of its task, or an invented task.
    seed
        Of all sides.
    hardware
        The id of the machine, where it was noted.
    bundle
        When the bundle was made, where it was noted.
    details
        What else a benchmark wants to know.
    """

    columns: ClassVar[pl.Schema] = RACES

    kind: str
    what: str
    seed: int | None = None
    hardware: str | None = None
    bundle: str | None = None
    tasks: tuple[RacedTask, ...]
    sides: dict[str, Side]
    details: dict[str, Any] = Field(default_factory=dict)

    @property
    def name(self) -> str:
        """What tells it from the other races of its benchmark."""
        return self.name_of(self.kind, self.what, self.seed)

    @staticmethod
    def name_of(kind: str, what: str, seed: int | None) -> str:
        """Return the name of a race that may still be to come."""
        return f"{kind}-{what}" if seed is None else f"{kind}-{what}-seed{seed}"

    @cached_property
    def weights(self) -> Floats:
        """Of the tasks."""
        return np.array([task.weight for task in self.tasks], "float64")

    def curve(self, side: str) -> Floats:
        """Return how fast a side was after each trial; see :func:`curve`."""
        return curve(self.sides[side], self.weights)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each side."""
        shared = {
            "kind": self.kind,
            "what": self.what,
            "seed": self.seed,
            "hardware": self.hardware,
            "bundle": self.bundle,
            "tasks": [task.model_dump() for task in self.tasks],
            "details": json.dumps(self.details),
        }
        return [shared | {"side": name, **_row(side)} for name, side in self.sides.items()]

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Return the race that :meth:`rows` gave these rows."""
        first = rows[0]
        shared = {field: first[field] for field in ("kind", "what", "seed", "hardware", "bundle")}
        return cls(
            **shared,
            tasks=first["tasks"],
            details=json.loads(first["details"]),
            sides={row["side"]: _side(row) for row in rows},
        )


def _row(side: Side) -> dict[str, Any]:
    again = side.again
    return {
        "settings": None if side.settings is None else json.dumps(side.settings),
        "trials": len(side.trials),
        "active_s": side.active_s,
        "measure_s": side.measure_s,
        "trial_task": [task for task, _, _ in side.trials],
        "trial_latency_s": [latency_s for _, latency_s, _ in side.trials],
        "trial_elapsed_s": [elapsed_s for _, _, elapsed_s in side.trials],
        "again_trial": None if again is None else [trial for trial, _ in again],
        "again_latency_s": None if again is None else [latency_s for _, latency_s in again],
    }


def _side(row: Mapping[str, Any]) -> Side:
    columns = [row[f"trial_{name}"] for name in ("task", "latency_s", "elapsed_s")]
    again = [row["again_trial"], row["again_latency_s"]]
    return Side(
        trials=tuple(zip(*columns, strict=True)),
        again=None if row["again_trial"] is None else tuple(zip(*again, strict=True)),
        active_s=row["active_s"],
        measure_s=row["measure_s"],
        settings=None if row["settings"] is None else json.loads(row["settings"]),
    )


def curve(side: Side, weights: Floats) -> Floats:
    """Weighted sum of the best latencies after each trial; infinite until each task has one.

    The best is what the side took for the best; its latency is what it took when it was measured
    again after the race, if there was such a second look.

    Returns
    -------
    Seconds, float64, one a trial.
    """
    again = None if side.again is None else dict(side.again)
    best = [math.inf] * len(weights)
    sums = []
    for number, (task, latency_s, _) in enumerate(side.trials):
        if again is not None:
            best[task] = again.get(number, best[task])
        elif latency_s is not None:
            best[task] = min(best[task], latency_s)
        sums.append(math.fsum(weights * best))
    return np.array(sums)
