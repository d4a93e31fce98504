"""Programs near the best, each with children in every direction: what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import polars as pl
from pydantic import BaseModel, ConfigDict

from tools.evidence.store import Record

CHILDREN = pl.Schema(
    {
        "device": pl.String(),
        "hardware": pl.String(),
        "workload_id": pl.String(),
        "title": pl.String(),
        "parent": pl.String(),
        "recorded": pl.Float64(),
        "parent_s": pl.Float64(),
        "direction": pl.String(),
        "words": pl.String(),
        "chance": pl.Float64(),
        "latency_s": pl.Float64(),
        "raced": pl.Boolean(),
    }
)
"""A row a child."""

SURROGATE, NATIVE = "surrogate", "native"
"""What measured them: a surrogate device, or the machine itself."""


class Child(BaseModel):
    """A program that is one change away from its parent.

    Attributes
    ----------
    direction, words
        What was changed, see :class:`tools.benchmarks.neighbours.Change`.
    chance
        With which MetaSchedule draws it among the measured children; they add up to 1.
    latency_s
        Seconds; ``None`` if it did not run.
    raced
        Whether repeats were saved, as it was much slower than its parent.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    direction: str
    words: str
    chance: float
    latency_s: float | None = None
    raced: bool = False


class Family(Record):
    """A parent and its children.

    Attributes
    ----------
    device, hardware
        What measured them, and what it is or stands for.
    workload_id, title
        Their task.
    parent
        The id of the parent.
    recorded
        What the parent took relative to the best of its task, according to the records.
    parent_s
        Seconds that it takes.
    children
        In the order in which they were measured.
    """

    columns: ClassVar[pl.Schema] = CHILDREN

    device: str
    hardware: str
    workload_id: str
    title: str
    parent: str
    recorded: float
    parent_s: float
    children: tuple[Child, ...]

    @property
    def name(self) -> str:
        """What tells it from the other families."""
        return self.name_of(self.device, self.hardware, self.parent)

    @staticmethod
    def name_of(device: str, hardware: str, parent: str) -> str:
        """Return the name of a family that may still be to come."""
        return f"{device}-{hardware}-{parent}"

    def rows(self) -> list[dict[str, Any]]:
        """Return a row a child."""
        shared = self.model_dump(exclude={"children"})
        return [shared | child.model_dump() for child in self.children]

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Return the family of its children's rows."""
        children = [Child(**{name: row[name] for name in Child.model_fields}) for row in rows]
        own = [name for name in CHILDREN if name not in Child.model_fields]
        return cls(**{name: rows[0][name] for name in own}, children=tuple(children))
