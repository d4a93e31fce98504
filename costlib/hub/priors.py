"""The prior bank: the best programs known for each cluster of look-alike tasks.

Tasks whose design spaces have the same sketches form a cluster; what is fast for one is a good
start for the others (Bayesian Code Diffusion, OSDI'25, diffuses within one run; a bank carries
over from other people's tuning). Sketches name no extents, so a prior is replayed on another task
of its cluster by fitting its decisions to that task's extents.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from costlib.data.parts import read_table
from costlib.errors import BundleError

FILE = "priors.parquet"

SCHEMA = pl.Schema(
    {
        "cluster": pl.String(),
        "hardware": pl.String(),
        "name": pl.String(),
        "extents": pl.List(pl.Int64()),
        "workload_id": pl.String(),
        "sketch_id": pl.String(),
        "decisions": pl.String(),
        "latency_s": pl.Float64(),
        "rank": pl.Int64(),
    }
)


class BankedProgram(NamedTuple):
    """A good program of a task like the one at hand.

    Attributes
    ----------
    sketch_id, decisions
        The program, without its workload.
    similarity
        Cosine of the two tasks' extents on a log scale, 1 if they are equal.
    rank
        0 for the best program known for its task, 1 for the second, ...
    hardware
        What it was measured on.
    extents
        The extents of its task's arguments, one after the other.
    """

    sketch_id: str
    decisions: list[Any]
    similarity: float
    rank: int
    hardware: str
    extents: tuple[int, ...]


def flat_extents(shapes: Iterable[Sequence[int]]) -> list[int]:
    """Return the extents of a task's arguments, one after the other."""
    return [extent for shape in shapes for extent in shape]


class PriorBank:
    """Good programs by cluster and hardware.

    Parameters
    ----------
    table
        A row for each program.
    """

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table

    def __len__(self) -> int:
        """How many programs there are."""
        return len(self.table)

    def nearest(
        self,
        cluster: str,
        extents: Sequence[int],
        count: int,
        hardware_id: str | None = None,
        *,
        exclude: Sequence[str] = (),
    ) -> list[BankedProgram]:
        """Look up good programs of tasks like one at hand.

        Parameters
        ----------
        cluster, extents
            The task's, see :attr:`costlib.space.design_space.DesignSpace.cluster` and
            :func:`flat_extents`.
        count
            How many at most.
        hardware_id
            Programs measured on this hardware come before others; then the best programs of all
            tasks, the nearest task's first, then the second best, and so on.
        exclude
            Workloads to leave out.
        """
        rows = self.table.filter(
            (pl.col("cluster") == cluster)
            & ~pl.col("workload_id").is_in(list(exclude))
            & (pl.col("extents").list.len() == len(extents))
        )
        priors = [
            BankedProgram(
                row["sketch_id"],
                json.loads(row["decisions"]),
                similarity(extents, row["extents"]),
                row["rank"],
                row["hardware"],
                tuple(row["extents"]),
            )
            for row in rows.iter_rows(named=True)
        ]
        priors.sort(key=lambda p: (p.hardware != hardware_id, p.rank, -p.similarity))
        distinct: dict[str, BankedProgram] = {}
        for prior in priors:
            distinct.setdefault(json.dumps([prior.sketch_id, prior.decisions]), prior)
        return list(distinct.values())[:count]

    def among(self, hardware_ids: Collection[str]) -> PriorBank:
        """Return a bank of the programs that were measured on some hardware alone."""
        return PriorBank(self.table.filter(pl.col("hardware").is_in(list(hardware_ids))))

    def joined(self, other: PriorBank) -> PriorBank:
        """Return a bank with the programs of both, ranked anew within each task and hardware."""
        of_task = ["workload_id", "hardware"]
        table = (
            pl.concat([self.table, other.table])
            .sort("latency_s")
            .unique([*of_task, "sketch_id", "decisions"], keep="first", maintain_order=True)
            .with_columns(rank=pl.int_range(pl.len()).over(of_task))
            .sort("cluster", "hardware", "workload_id", "rank")
        )
        return PriorBank(table)

    def save(self, folder: Path) -> None:
        """Write the bank into an existing folder."""
        self.table.write_parquet(folder / FILE, compression="zstd")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote."""
        try:
            table = pl.DataFrame(read_table(folder / FILE))
        except (OSError, ValueError, pl.exceptions.PolarsError) as error:
            reason = str(error).splitlines()[0]
            raise BundleError(f"{folder} holds no prior bank: {reason}") from None
        if table.schema != SCHEMA:
            raise BundleError(f"{folder} holds no prior bank: its columns are others")
        return cls(table)


def similarity(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the cosine of two tasks' extents on a log scale, 1 if they are equal."""
    a, b = (np.log2(np.asarray(extents, "float64") + 1) for extents in (one, other))
    norm = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norm if norm else 1.0
