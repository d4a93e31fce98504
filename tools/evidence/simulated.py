"""Searches on a surrogate device: what each of them found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import polars as pl
from pydantic import ConfigDict

from tools.evidence.store import Record

SEARCHES = pl.Schema(
    {
        "part": pl.String(),
        "setting": pl.String(),
        "what": pl.String(),
        "seed": pl.Int32(),
        "trials": pl.Int32(),
        "tasks": pl.Int32(),
        "hardware": pl.String(),
        "curve_s": pl.List(pl.Float64()),
        "seconds": pl.Float64(),
        "fit": pl.String(),
    }
)
"""A row a search; ``fit`` is JSON."""

PROOF, NETWORKS, SCREEN, BUDGETS = "proof", "networks", "screen", "budgets"
"""What was really raced at single tasks, and at whole networks; and what was not, at single tasks
and at whole networks."""

ORACLE = "oracle"
"""Searches of single tasks that are told in which direction to change programs."""


class SimulatedSearch(Record):
    """A search on a surrogate device.

    Attributes
    ----------
    part
        :data:`PROOF`, :data:`NETWORKS`, :data:`SCREEN`, :data:`BUDGETS` or :data:`ORACLE`.
    setting, what, seed
        How it searched, for what, and the seed of search and device.
    trials
        Its budget, for each task.
    tasks
        How many there were.
    hardware
        What the surrogate stands for.
    curve_s
        Seconds that what it took for the best takes in truth, after each trial: the weighted sum
        over its tasks, infinite while one has none.
    seconds
        That the search lasted.
    fit
        How good the surrogate is, see :class:`costlib.testing.landscape.Fit`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")
    columns: ClassVar[pl.Schema] = SEARCHES

    part: str
    setting: str
    what: str
    seed: int
    trials: int
    tasks: int
    hardware: str
    curve_s: tuple[float, ...]
    seconds: float
    fit: dict[str, Any]

    @property
    def name(self) -> str:
        """What tells it from the other searches."""
        return self.name_of(self.part, self.setting, self.what, self.seed, self.trials)

    @staticmethod
    def name_of(part: str, setting: str, what: str, seed: int, trials: int) -> str:
        """Return the name of a search that may still be to come."""
        return f"{part}-{what}-seed{seed}-trials{trials}-{setting}"

    def rows(self) -> list[dict[str, Any]]:
        """Return its one row."""
        return [self.model_dump() | {"curve_s": list(self.curve_s), "fit": json.dumps(self.fit)}]

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Return the search of a row."""
        (row,) = rows
        known = {name: row[name] for name in SEARCHES}
        return cls(**known | {"fit": json.loads(row["fit"])})
