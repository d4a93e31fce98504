"""What a benchmark measured, piece by piece: raw while it runs, packed when it is committed.

A piece is a JSON file in ``tools/results/raw/<benchmark>/``, which git ignores, until ``python -m
tools.evidence.pack`` merges all of them into ``tools/results/<benchmark>.parquet``.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import polars as pl
from pydantic import BaseModel, ConfigDict

from costlib.files import write_file
from tools.evidence.files import RESULTS


class Record(BaseModel, ABC):
    """A piece that is measured at once; its rows lie together in the parquet file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    columns: ClassVar[pl.Schema]

    @property
    @abstractmethod
    def name(self) -> str:
        """What tells it from the other pieces of its benchmark."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """Return its rows, of :attr:`columns`."""

    @classmethod
    @abstractmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Return the piece that :meth:`rows` gave these rows."""


R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Store(Generic[R]):
    """All pieces of a benchmark."""

    benchmark: str
    kind: type[R]
    folder: Path = RESULTS

    @property
    def packed_file(self) -> Path:
        """Where the packed ones are."""
        return self.folder / f"{self.benchmark}.parquet"

    @property
    def raw_folder(self) -> Path:
        """Where the others are."""
        return self.folder / "raw" / self.benchmark

    def __contains__(self, name: str) -> bool:
        """Whether a piece has been measured."""
        return (self.raw_folder / f"{name}.json").exists() or name in self._packed_names()

    def save(self, record: R) -> None:
        """Write a raw one, in one step."""
        file = self.raw_folder / f"{record.name}.json"
        write_file(file, record.model_dump_json(exclude_none=True).encode())

    def load(self) -> list[R]:
        """Return all of them, by name."""
        found = {record.name: record for record in (*self._packed(), *self._raw())}
        return [found[name] for name in sorted(found)]

    def pack(self) -> int:
        """Merge raw ones into the packed file; return how many there were.

        One that is packed already is replaced. The packed file is written in one step, and raw ones
        are removed after that.
        """
        raw = [record.name for record in self._raw()]
        if raw:
            self._write(self.load())
        for name in raw:
            (self.raw_folder / f"{name}.json").unlink()
        return len(raw)

    def adopt(self, other: Self, beginning: str) -> None:
        """Put those of another store in the place of the packed ones whose names begin so."""
        kept = [record for record in self._packed() if not record.name.startswith(beginning)]
        new = [record for record in other.load() if record.name.startswith(beginning)]
        self._write(sorted([*kept, *new], key=lambda record: record.name))

    def _write(self, records: Iterable[R]) -> None:
        rows = [
            {"benchmark": self.benchmark, "race": record.name, **row}
            for record in records
            for row in record.rows()
        ]
        columns = {"benchmark": pl.String(), "race": pl.String(), **self.kind.columns}
        packed = io.BytesIO()
        pl.DataFrame(rows, columns).write_parquet(packed, compression_level=19)
        write_file(self.packed_file, packed.getbuffer())

    def _packed_names(self) -> set[str]:
        if not self.packed_file.exists():
            return set()
        return set(pl.read_parquet(self.packed_file, columns=["race"])["race"])

    def _packed(self) -> Iterator[R]:
        if self.packed_file.exists():
            rows = pl.read_parquet(self.packed_file).iter_rows(named=True)
            for _, found in groupby(rows, lambda row: row["race"]):
                yield self.kind.from_rows(list(found))

    def _raw(self) -> Iterator[R]:
        for file in sorted(self.raw_folder.glob("*.json")):
            yield self.kind.model_validate_json(file.read_text())
