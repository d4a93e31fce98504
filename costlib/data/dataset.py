"""A dataset: a folder of parquet parts and small JSON files.

::

    <dataset>/
      README.md                                what it holds, for people and the Hugging Face hub
      dataset.json                             schema version, versions of the tools
      provenance.json                          what it was merged or sampled from, if it was
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

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from costlib import files
from costlib.canary_times import CanaryTimes
from costlib.data import parts
from costlib.data.manifest import (
    MANIFEST,
    SCRATCH,
    DatasetInfo,
    HardwareFile,
    check_place,
    read_hardware,
    read_info,
)
from costlib.data.remote import fetch_dataset
from costlib.errors import DatasetError, UnknownNameError
from costlib.hardware import Hardware
from costlib.remote.address import is_url
from costlib.schema import PARTITIONED, TABLES

HELD_OUT_FOLDER = "heldout"

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
    path, info
        Its folder, and its versions.
    scratch
        Where writers keep what is unfinished, see :func:`costlib.files.write_file`.
    """

    def __init__(self, path: Path, info: DatasetInfo) -> None:
        self.path = path
        self.info = info
        self.scratch = path / SCRATCH

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path) -> Dataset:
        """Open a dataset for appending; make an empty one if there is none.

        Also removes what writers that were killed have left unfinished.

        Raises
        ------
        DatasetError, StorageError
            See :func:`costlib.data.manifest.check_place` and :meth:`open`.
        """
        path = Path(path)
        check_place(path)
        if not (path / MANIFEST).exists():
            files.write_json(path / MANIFEST, DatasetInfo.new().model_dump(), path / SCRATCH)
        files.remove_stale(path / SCRATCH)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> Dataset:
        """Open a dataset that exists; a published one, given by its address, is fetched.

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

    def reading(self) -> AbstractContextManager[None]:
        """Keep the parts that are there now from being removed by a compaction.

        Without it, a lazy frame that was made before a compaction and collected after it
        raises ``FileNotFoundError``. Append nothing in the body.
        """
        return files.locked(self.path, shared=True)

    def add_hardware(
        self, hardware: Hardware, canary: CanaryTimes | None = None
    ) -> CanaryTimes | None:
        """Note a hardware, before its first measurement is appended.

        Return the reference of its canaries that counts: the first one noted, perhaps by another
        process.

        Parameters
        ----------
        canary
            What its canaries take in the state that latencies are corrected to, in seconds;
            ``None`` if no canaries were measured, as in foreign logs.

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
        found = sorted((self.path / "hardware").glob("*.json"))
        return {file.stem: read_hardware(file).hardware for file in found}

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
        return self.append_table("workloads", rows)

    def append_sketches(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Append rows of :data:`costlib.schema.SKETCHES`, as :meth:`append_workloads` does."""
        return self.append_table("sketches", rows)

    def append_networks(self, rows: Sequence[Mapping[str, Any]]) -> int:
        """Append rows of :data:`costlib.schema.NETWORKS`, as :meth:`append_workloads` does."""
        return self.append_table("networks", rows)

    def append_measurements(self, hardware_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows of :data:`costlib.schema.MEASUREMENTS` as one part, all or none.

        Raises
        ------
        DatasetError
            A row does not fit the schema, or the hardware was not added.
        StorageError
            They could not be written; nothing has changed.
        """
        self.append_table("measurements", rows, hardware_id)

    def append_mutations(self, hardware_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Append rows of :data:`costlib.schema.MUTATIONS`, as :meth:`append_measurements` does."""
        self.append_table("mutations", rows, hardware_id)

    def append_table(
        self,
        table: str,
        rows: Sequence[Mapping[str, Any]] | pa.Table,
        hardware_id: str | None = None,
    ) -> int:
        """Append to any table, as the methods above do; say how many rows were appended.

        They are mappings, or an arrow table with exactly the columns of ``table``; measurements
        and mutations are of a hardware.
        """
        if hardware_id is not None and not self._hardware_file(hardware_id).exists():
            raise DatasetError(f"{self.path} has no hardware '{hardware_id}'; add_hardware first")
        if not len(rows):
            return 0
        if not isinstance(rows, pa.Table):
            rows = parts.table_from_rows(rows, TABLES[table])
        if hardware_id is not None:
            folder = self.path / table / f"hardware={hardware_id}"
            parts.write_part(folder, rows, TABLES[table], self.scratch)
            return len(rows)
        with files.locked(self.path / table):
            known = self.scan(table).select(_KEYS[table]).collect()
            ids = pl.DataFrame(rows.select(_KEYS[table])).with_row_index("place")
            ids = ids.unique(_KEYS[table], keep="first", maintain_order=True)
            new = ids.join(known, on=_KEYS[table], how="anti", maintain_order="left")
            if len(new):
                fresh = rows.take(new["place"].to_arrow())
                parts.write_part(self.path / table, fresh, TABLES[table], self.scratch)
        return len(new)

    def folders(self, table: str) -> list[Path]:
        """Return the folders that hold the parts of a table, one for each hardware or one."""
        if table not in TABLES:
            raise UnknownNameError("table", table, TABLES)
        folder = self.path / table
        return sorted(folder.glob("hardware=*/")) if table in PARTITIONED else [folder]

    def part_files(self, table: str) -> list[Path]:
        """Return the parts of a table that count, oldest first for each hardware."""
        with self.reading():
            return [part for folder in self.folders(table) for part in parts.list_parts(folder)]

    def scan(self, table: str = "measurements") -> pl.LazyFrame:
        """Return the rows of a table that are there now, lazily.

        Returns
        -------
        polars.LazyFrame
            The columns of :data:`costlib.schema.TABLES`; those that an older part lacks are
            null, or what :data:`costlib.schema.ADDED` says. Measurements and mutations also have
            ``hardware``, the hardware id, last; a filter on it opens that hardware's parts only.

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
                _scan([part], schema, hive={})
                .with_columns(hardware=pl.lit(parts.hardware_of(part)))
                .select(schema.names())
                for part in found
            )
        return _scan(found, schema, hive)

    def measured(self, hardware_id: str) -> set[str]:
        """Return the ids of all programs measured on a hardware, failed ones included."""
        rows = self.scan().filter(pl.col("hardware") == hardware_id)
        return set(rows.select("program_id").collect().to_series())

    def _hardware_file(self, hardware_id: str) -> Path:
        return self.path / "hardware" / f"{hardware_id}.json"


def _scan(found: list[Path], schema: pl.Schema, hive: dict[str, pl.String]) -> pl.LazyFrame:
    return parts.filled(
        pl.scan_parquet(
            found,
            glob=False,
            schema=schema,
            hive_partitioning=bool(hive),
            hive_schema=hive or None,
            missing_columns="insert",
            extra_columns="ignore",
        )
    )
