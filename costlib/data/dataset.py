"""A dataset: a folder of parquet parts and small JSON files.

::

    <dataset>/
      README.md                                what it holds, for people and the Hugging Face hub
      dataset.json                             schema version, versions of the tools
      hardware/<hardware_id>.json              the hardware and the reference of its canaries
      workloads/part-*.parquet                 costlib.schema.WORKLOADS
      sketches/part-*.parquet                  costlib.schema.SKETCHES
      networks/part-*.parquet                  costlib.schema.NETWORKS
      measurements/hardware=<id>/part-*.parquet  costlib.schema.MEASUREMENTS
      mutations/hardware=<id>/part-*.parquet   costlib.schema.MUTATIONS
      heldout/                                 a dataset of the tasks no model may be trained on

Parts are only ever added, each in one step (:mod:`costlib.data.parts`), so any number of
processes may read while others append; :mod:`costlib.data.compact` puts one part in the place
of many, in one step, too. No costlib is needed to read one::

    polars.scan_parquet("<dataset>/measurements/**/*.parquet")
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from costlib import files
from costlib.data import parts
from costlib.data.listing import list_parts
from costlib.data.manifest import MANIFEST, DatasetInfo, HardwareFile, read_hardware, read_info
from costlib.data.remote import fetch_dataset
from costlib.errors import DatasetError, UnknownNameError
from costlib.hardware import Hardware
from costlib.remote.address import is_url
from costlib.schema import PARTITIONED, TABLES, CanaryTimes

HELD_OUT_FOLDER = "heldout"

_SCRATCH = ".unfinished"

_KEYS = {
    "workloads": ["workload_id"],
    "sketches": ["sketch_id"],
    "networks": ["network", "workload_id"],
}
"""What tells rows apart in the tables that hold each row once."""


class Dataset:
    """A dataset on disk; made by :meth:`create` and :meth:`open`.

    Attributes
    ----------
    path
        Its folder.
    info
        Its versions.
    scratch
        Where writers keep what is unfinished, see :func:`costlib.files.write_file`.
    """

    def __init__(self, path: Path, info: DatasetInfo) -> None:
        self.path = path
        self.info = info
        self.scratch = path / _SCRATCH

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path) -> Dataset:
        """Open a dataset for appending; make an empty one if there is none.

        Also removes what writers that were killed have left unfinished.

        Raises
        ------
        DatasetError
            ``path`` is a file or holds something else, or see :meth:`open`.
        StorageError
            The dataset cannot be written.
        """
        path = Path(path)
        with files.storage_errors(path):
            if path.exists() and not path.is_dir():
                raise DatasetError(f"{path} is a file; choose a folder for the dataset")
            entries = {entry.name for entry in path.iterdir()} if path.exists() else set()
        if entries - {_SCRATCH} and MANIFEST not in entries:
            raise DatasetError(f"{path} is not empty and no dataset; choose another folder")
        if MANIFEST not in entries:
            files.write_json(path / MANIFEST, DatasetInfo.new().model_dump(), path / _SCRATCH)
        files.remove_stale(path / _SCRATCH)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> Dataset:
        """Open a dataset that exists.

        Parameters
        ----------
        path
            Its folder, or the address of a published one, which is fetched to be read.

        Raises
        ------
        DatasetError
            There is none, or it cannot be read, or its schema version is another.
        HubError
            It is elsewhere, cannot be reached, and was never fetched.
        """
        if is_url(path):
            path = fetch_dataset(str(path))
        path = Path(path)
        return cls(path, read_info(path))

    def held_out(self) -> Dataset | None:
        """Open the dataset of held-out tasks inside this one, ``None`` if there is none.

        It lies in a folder of its own, so that nothing that reads this dataset meets it.
        """
        folder = self.path / HELD_OUT_FOLDER
        return Dataset.open(folder) if (folder / MANIFEST).exists() else None

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep the parts that are there now from being removed by a compaction.

        Without it, a lazy frame that was made before a compaction and collected after it
        raises ``FileNotFoundError``. Append nothing in the body.
        """
        with files.locked(self.path, shared=True):
            yield

    def add_hardware(
        self, hardware: Hardware, canary: CanaryTimes | None = None
    ) -> CanaryTimes | None:
        """Note a hardware, before its first measurement is appended.

        Parameters
        ----------
        hardware
            The hardware.
        canary
            What its canaries take in the state that latencies are corrected to, in seconds;
            ``None`` if no canaries were measured, as in foreign logs.

        Returns
        -------
        CanaryTimes or None
            The reference that counts: the first one noted for this hardware, perhaps by
            another process.

        Raises
        ------
        StorageError
            The dataset cannot be written.
        """
        file = self._hardware_file(hardware.hardware_id)
        with files.locked(file.parent):
            if not file.exists() or (canary and read_hardware(file).canary is None):
                content = HardwareFile(hardware=hardware, canary=canary).model_dump(mode="json")
                files.write_json(file, content, self.scratch)
        return read_hardware(file).canary

    def hardware(self) -> dict[str, Hardware]:
        """Return each hardware of the dataset by its id; raise :class:`DatasetError`."""
        files = sorted((self.path / "hardware").glob("*.json"))
        return {file.stem: read_hardware(file).hardware for file in files}

    def canary(self, hardware_id: str) -> CanaryTimes | None:
        """Return the reference of a hardware's canaries, ``None`` if it is not noted."""
        file = self._hardware_file(hardware_id)
        return read_hardware(file).canary if file.exists() else None

    def append_workloads(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Append those rows of :data:`costlib.schema.WORKLOADS` whose id is new; say how many.

        Raises
        ------
        DatasetError
            A row does not fit the schema.
        StorageError
            They could not be written; nothing has changed.
        """
        return self._append_new("workloads", rows)

    def append_sketches(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Append rows of :data:`costlib.schema.SKETCHES`, as :meth:`append_workloads` does."""
        return self._append_new("sketches", rows)

    def append_networks(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Append rows of :data:`costlib.schema.NETWORKS`, as :meth:`append_workloads` does."""
        return self._append_new("networks", rows)

    def append_measurements(self, hardware_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows of :data:`costlib.schema.MEASUREMENTS` as one part, all or none.

        Raises
        ------
        DatasetError
            A row does not fit the schema, or the hardware was not added.
        StorageError
            They could not be written; nothing has changed.
        """
        self._append_of("measurements", hardware_id, rows)

    def append_mutations(self, hardware_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows of :data:`costlib.schema.MUTATIONS`, as :meth:`append_measurements` does."""
        self._append_of("mutations", hardware_id, rows)

    def append_table(self, table: str, rows: pa.Table, hardware_id: str | None = None) -> None:
        """Append rows that are an arrow table already, as the methods above do.

        Parameters
        ----------
        table
            One of :data:`costlib.schema.TABLES`.
        rows
            With exactly its columns.
        hardware_id
            The hardware, for measurements and mutations.
        """
        if hardware_id is None:
            self._append_new(table, rows)
        else:
            self._append_of(table, hardware_id, rows)

    def folders(self, table: str) -> list[Path]:
        """Return the folders that hold the parts of a table, one for each hardware or one."""
        if table not in TABLES:
            raise UnknownNameError("table", table, TABLES)
        folder = self.path / table
        return sorted(folder.glob("hardware=*/")) if table in PARTITIONED else [folder]

    def part_files(self, table: str) -> list[Path]:
        """Return the parts of a table that count, oldest first for each hardware."""
        with self.reading():
            return [part for folder in self.folders(table) for part in list_parts(folder)]

    def scan(self, table: str = "measurements") -> pl.LazyFrame:
        """Return the rows of a table that are there now, lazily.

        Parameters
        ----------
        table
            One of :data:`costlib.schema.TABLES`.

        Returns
        -------
        polars.LazyFrame
            The columns of :data:`costlib.schema.TABLES`; those that an older part lacks are
            null. Measurements and mutations also have ``hardware``, the hardware id, last; a
            filter on it opens that hardware's parts only.

        Raises
        ------
        DatasetError
            A part is damaged; the message names it.
        UnknownNameError
            There is no such table.
        """
        with self.reading():
            found = self.part_files(table)
            for part in found:
                parts.check_part(part, TABLES[table])
        hive = {"hardware": pl.String()} if table in PARTITIONED else {}
        schema = pl.Schema({**parts.polars_schema(TABLES[table]), **hive})
        if not found:
            return pl.LazyFrame(schema=schema)
        if "=" in str(self.path.absolute()) and hive:
            # Polars would take a folder above the dataset for a column, too.
            return pl.concat(
                _scan([part for part in found if part.parent == folder], schema, hive={})
                .with_columns(hardware=pl.lit(folder.name.removeprefix("hardware=")))
                .select(schema.names())
                for folder in sorted({part.parent for part in found})
            )
        return _scan(found, schema, hive)

    def measured(self, hardware_id: str) -> set[str]:
        """Return the ids of all programs measured on a hardware, failed ones included."""
        rows = self.scan().filter(pl.col("hardware") == hardware_id)
        return set(rows.select("program_id").collect().to_series())

    def _hardware_file(self, hardware_id: str) -> Path:
        return self.path / "hardware" / f"{hardware_id}.json"

    def _append_of(
        self, table: str, hardware_id: str, rows: Sequence[Mapping[str, Any]] | pa.Table
    ) -> None:
        if not self._hardware_file(hardware_id).exists():
            raise DatasetError(f"{self.path} has no hardware '{hardware_id}'; add_hardware first")
        if len(rows):
            folder = self.path / table / f"hardware={hardware_id}"
            parts.write_part(folder, _arrow(table, rows), TABLES[table], self.scratch)

    def _append_new(self, table: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> int:
        if not len(rows):
            return 0
        key = _KEYS[table]
        candidates = _arrow(table, rows)
        with files.locked(self.path / table):
            known = set(self.scan(table).select(key).collect().iter_rows())
            new: dict[tuple[Any, ...], int] = {}
            ids = zip(*(candidates[column].to_pylist() for column in key), strict=True)
            for position, row_id in enumerate(ids):
                if row_id not in known:
                    new.setdefault(row_id, position)
            if new:
                fresh = candidates.take(list(new.values()))
                parts.write_part(self.path / table, fresh, TABLES[table], self.scratch)
        return len(new)


def _arrow(table: str, rows: Sequence[Mapping[str, Any]] | pa.Table) -> pa.Table:
    return rows if isinstance(rows, pa.Table) else parts.table_from_rows(rows, TABLES[table])


def _scan(found: list[Path], schema: pl.Schema, hive: dict[str, pl.String]) -> pl.LazyFrame:
    return pl.scan_parquet(
        found,
        glob=False,
        schema=schema,
        hive_partitioning=bool(hive),
        hive_schema=hive or None,
        missing_columns="insert",
        extra_columns="ignore",
    )
