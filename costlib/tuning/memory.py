"""The best programs of a user's own runs, as priors of the next ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pyarrow as pa

from costlib.data.parts import read_table, write_part
from costlib.errors import DatasetError
from costlib.files import storage_errors
from costlib.hardware import Hardware
from costlib.hub.priors import SCHEMA, PriorBank, flat_extents
from costlib.places import check_writable, refuse_others
from costlib.schema import ADDED
from costlib.search.strategy import Strategy

_PER_TASK = 4

_SCHEMA = pl.Schema({**SCHEMA, "cache": pl.String()})
"""Of a part; older ones lack what programs found in the caches, and were measured warm."""

_AT_THE_TOP = "x86-64"
"""The family whose parts lie in the memory's folder itself."""


class Memory:
    """A folder of priors, a part for each run.

    Parameters
    ----------
    folder
        The folder; made if it does not exist.
    family
        Of the hardware; what other families remember lies in folders of their own.

    Raises
    ------
    InputError
        It is a file, or holds a run, a dataset or a bundle.
    StorageError
        It cannot be written.
    """

    def __init__(self, folder: str | Path, family: str = _AT_THE_TOP) -> None:
        refuse_others(Path(folder), "a memory")
        self._folder = Path(folder) / ("" if family == _AT_THE_TOP else family)
        check_writable(self._folder)
        with storage_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)

    def bank(self) -> PriorBank:
        """Return what is remembered; of equal tasks the best programs of all runs.

        What was measured in different states of the caches is ranked apart.

        Raises
        ------
        DatasetError
            A part is damaged.
        """
        try:
            parts = sorted(self._folder.glob("part-*"))
            tables = [_with_state(pl.DataFrame(read_table(part))) for part in parts]
            table = pl.concat([pl.DataFrame(schema=_SCHEMA), *tables])
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            reason = str(error).splitlines()[0]
            raise DatasetError(
                f"{self._folder} is no memory of tuning runs: {reason}; remove the part"
            ) from None
        key = ["workload_id", "hardware", "cache"]
        return PriorBank(
            table.sort("latency_s")
            .unique([*key, "sketch_id", "decisions"], keep="first", maintain_order=True)
            .with_columns(rank=pl.int_range(pl.len()).over(key))
            .filter(pl.col("rank") < _PER_TASK)
            .drop("cache")
        )

    def add(self, searches: Iterable[Strategy], hardware: Hardware) -> None:
        """Remember the best programs of a run's tasks."""
        rows = [
            {
                "cluster": search.space.cluster,
                "hardware": hardware.hardware_id,
                "name": search.task.name,
                "extents": flat_extents(shape for _, shape in search.task.arguments),
                "workload_id": search.task.workload_id,
                "sketch_id": program.sketch_id,
                "decisions": program.decisions_json(),
                "latency_s": latency_s,
                "rank": rank,
                "cache": str(search.task.cache),
            }
            for search in searches
            for rank, (latency_s, program) in enumerate(search.elite[:_PER_TASK])
        ]
        if rows:
            table: pa.Table = pl.DataFrame(rows, schema=_SCHEMA).to_arrow()
            write_part(self._folder, table, table.schema, self._folder / ".unfinished")


def _with_state(part: pl.DataFrame) -> pl.DataFrame:
    warm = pl.lit(ADDED["cache"]).alias("cache")
    return part if "cache" in part.columns else part.with_columns(warm)
