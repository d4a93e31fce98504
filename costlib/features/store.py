"""The features of a dataset's programs on disk, and their way into arrays. Knows nothing of TVM.

``features/<version>/hardware=<id>/workload=<id>/part-*.parquet`` is derived data: it may be deleted
at any time; :mod:`costlib.features.build` computes what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from costlib.arrays import Float32s, Integers
from costlib.data.dataset import Dataset
from costlib.data.parts import PART_PATTERN, read_part, write_part
from costlib.errors import DatasetError
from costlib.features.version import feature_version

SCHEMA = pa.schema(
    [
        pa.field("program_id", pa.string(), nullable=False),
        pa.field("num_stores", pa.int32(), nullable=False),
        # Bytes, not a list: parquet brings them back four times as fast.
        pa.field("stores", pa.binary(), nullable=False),
        pa.field("nests", pa.binary(), nullable=False),
    ]
)
"""``stores`` is little-endian float32, `num_stores x d`, row after row; ``nests`` is what
:mod:`costlib.features.nest_features` tells. A program that this version cannot replay has
neither, so that it is not tried again."""


class ProgramFeatures(NamedTuple):
    """Of one program: float32 `n_stores x d` and float32 `k`."""

    stores: Float32s
    nests: Float32s


class FeatureStore:
    """The features of a dataset's programs, of one of its hardwares, that are there now."""

    def __init__(self, dataset: Dataset, hardware_id: str) -> None:
        known = dataset.hardware().get(hardware_id)
        version = feature_version("cpu" if known is None else known.kind)
        self.folder = dataset.path / "features" / version / f"hardware={hardware_id}"

    def known(self, workload_id: str) -> pl.DataFrame:
        """Return ``program_id`` and ``num_stores`` of a task's programs, each once."""
        frame = pl.DataFrame(self._read(workload_id, ["program_id", "num_stores"]))
        return frame.unique("program_id", keep="first", maintain_order=True)

    def select(
        self, workload_id: str, program_ids: pl.Series
    ) -> tuple[Float32s, Integers, Float32s]:
        """Return the features of `n` different programs of a task.

        All of them must be :meth:`known`, and have stores.

        Returns
        -------
        stores, offsets, nests
            float32 `s x d` and int64 `n + 1`, as in
            :class:`costlib.features.batch.FeatureBatch`; float32 `n x k`.
        """
        table = self._read(workload_id, SCHEMA.names)
        rows = pl.DataFrame(table.select(["program_id", "num_stores"])).with_row_index("row")
        chosen = pl.DataFrame({"program_id": program_ids}).join(
            rows.unique("program_id", keep="first"), on="program_id", maintain_order="left"
        )
        if len(chosen) < len(program_ids):
            raise LookupError(f"{self.folder} lacks programs of task {workload_id}")
        positions = chosen["row"].to_numpy()
        offsets = np.concatenate([[0], np.cumsum(chosen["num_stores"].to_numpy(), dtype="int64")])
        in_order = np.array_equal(positions, np.arange(len(table)))
        stores, nests = (
            _floats(column if in_order else column.take(pa.array(positions)))
            for column in (table[name].combine_chunks() for name in ("stores", "nests"))
        )
        return stores.reshape(offsets[-1], -1), offsets, nests.reshape(len(positions), -1)

    def _read(self, workload_id: str, columns: list[str]) -> pa.Table:
        schema = pa.schema([SCHEMA.field(name) for name in columns])
        parts = sorted(_folder(self.folder, workload_id).glob(PART_PATTERN))
        return pa.concat_tables([schema.empty_table(), *(read_part(p, schema) for p in parts)])


def append_features(
    folder: Path,
    scratch: Path,
    workload_id: str,
    program_ids: Sequence[str],
    features: Sequence[ProgramFeatures | None],
) -> None:
    """Write the features of programs of one task as a part.

    Parameters
    ----------
    folder
        That of a :class:`FeatureStore`.
    scratch
        See :func:`costlib.files.write_file`.
    features
        Of each program, ``None`` if it cannot be replayed.

    Raises
    ------
    DatasetError
        A feature is NaN or infinite.
    StorageError
        They could not be written; nothing has changed.
    """
    for program_id, program in zip(program_ids, features, strict=True):
        if program is not None and not all(np.isfinite(array).all() for array in program):
            raise DatasetError(f"program {program_id} has a feature that is no finite number")
    columns = {
        "program_id": list(program_ids),
        "num_stores": [0 if program is None else len(program.stores) for program in features],
        "stores": [b"" if p is None else p.stores.astype("<f4").tobytes() for p in features],
        "nests": [b"" if p is None else p.nests.astype("<f4").tobytes() for p in features],
    }
    write_part(_folder(folder, workload_id), pa.table(columns), SCHEMA, scratch)


def _folder(folder: Path, workload_id: str) -> Path:
    return folder / f"workload={workload_id}"


def _floats(column: pa.Array) -> Float32s:
    """Return the bytes of all rows as one float32 vector, without copying."""
    _, ends, content = column.buffers()
    if content is None:
        return np.empty(0, "float32")
    bounds = np.frombuffer(ends, "int32")[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(content, "uint8")[bounds[0] : bounds[-1]].view("<f4")
