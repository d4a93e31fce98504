"""Rows that a dataset holds twice: which they are, and which of each is kept.

They come about where two processes write one folder without knowing of each other, or where a part
is copied by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from costlib.data.checks import may_recur
from costlib.data.parts import read_part
from costlib.schema import TABLES, Status

KEYS = {
    "workloads": pl.col("workload_id").hash(),
    "sketches": pl.col("sketch_id").hash(),
    "networks": pl.struct("network", "workload_id").hash(),
    "measurements": pl.when(may_recur())
    .then(pl.struct("program_id", "status", "latency_s", "measured_at").hash())
    .otherwise(pl.struct("program_id", "cache").hash()),
    "mutations": pl.struct("parent_id", "direction", "program_id", "model").hash(),
}
"""What tells rows of one folder apart: some programs may occur more than once."""


def repeated_rows(parts: Sequence[Path], table: str) -> dict[Path, list[int]]:
    """Return for each part the rows that repeat another, in that or any other of the parts.

    Of equal measurements the first that ran is not among them, of all others the first.

    Parameters
    ----------
    parts
        The parts of one folder, oldest first.
    table
        The table that they belong to.

    Raises
    ------
    DatasetError
        A part is damaged.
    """
    failed = pl.col("status") != str(Status.OK) if table == "measurements" else pl.lit(False)
    frames = [
        pl.DataFrame(read_part(part, TABLES[table]))
        .select(key=KEYS[table], failed=failed)
        .with_row_index("row")
        .with_columns(part=pl.lit(number))
        for number, part in enumerate(parts)
    ]
    if not frames:
        return {}
    rows = pl.concat(frames).sort("failed", maintain_order=True)
    repeated = rows.filter(~pl.col("key").is_first_distinct()).group_by("part").agg("row")
    return {parts[number]: found for number, found in repeated.sort("part").iter_rows()}
