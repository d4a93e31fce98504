"""Several datasets into one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import polars as pl

from costlib.data.copying import Copied, copy_rows
from costlib.data.dataset import HELD_OUT_FOLDER, Dataset
from costlib.data.manifest import MANIFEST, check_place
from costlib.data.provenance import note_sources
from costlib.data.splits import leaked
from costlib.errors import InputError
from costlib.frozen import Frozen
from costlib.schema import PARTITIONED


class Merge(Frozen):
    """What a merge did.

    Attributes
    ----------
    measurements, heldout_measurements
        How many were added.
    repeated
        Measurements not added because the program was there already, for the same hardware.
    corrected
        Added measurements whose latency is another now: their dataset had another reference
        for the canaries of that hardware.
    left_out
        Ids of the tasks that were measured in one dataset and are, or nearly are, held out in
        another. Their records are in the result only where they are held out.
    """

    measurements: int
    heldout_measurements: int
    repeated: int
    corrected: int
    left_out: list[str]


def merge(paths: Sequence[str | Path], out: str | Path) -> Merge:
    """Copy all rows of several datasets into one; called again, it ends what was interrupted.

    A program that several datasets hold for one hardware is kept once, from the first of
    them. Where they refer to different canaries of one hardware, all latencies are corrected
    anew to the fastest: a slow moment can be told from it, the other way round it cannot.
    Features are not copied. What it was merged from is noted beside them, see
    :mod:`costlib.data.provenance`. Besides one batch of rows, 80 bytes for each program are in
    memory.

    Parameters
    ----------
    out
        The merged dataset's folder; made if it does not exist.

    Raises
    ------
    InputError
        ``out`` is one of ``paths``.
    DatasetError
        One of them cannot be read, or ``out`` holds what does not fit: another reference, or
        tasks that are held out elsewhere.
    StorageError
        ``out`` cannot be written; what is there already is sound.
    """
    if Path(out).resolve() in {Path(path).resolve() for path in paths}:
        raise InputError(f"{out} is itself to be merged; choose a new folder for the output")
    check_place(out)
    sources = [Dataset.open(path) for path in paths]
    held_out = [inner for source in sources if (inner := source.held_out())]
    with ExitStack() as stack:
        for dataset in [*sources, *held_out]:
            stack.enter_context(dataset.reading())
        left_out = {name for one in sources for inner in held_out for name in leaked(one, inner)}
        for inner in held_out if (Path(out) / MANIFEST).exists() else []:
            if trained_on := leaked(Dataset.open(out), inner):
                raise InputError(
                    f"{out} holds tasks that {inner.path} holds out, the first is "
                    f"{min(trained_on)}; choose a new folder for the output"
                )
        target = Dataset.create(out)
        note_sources(target, paths, sources)
        inner_target = target.held_out()
        inner_copied = Copied()
        if held_out:
            inner_target = Dataset.create(target.path / HELD_OUT_FOLDER)
            inner_copied = copy_rows(held_out, inner_target, lambda table, hardware, rows: rows)
        if inner_target is not None:
            left_out |= {name for one in sources for name in leaked(one, inner_target)}

        def wanted(table: str, hardware_id: str | None, rows: pl.DataFrame) -> pl.DataFrame:
            if table not in PARTITIONED:
                return rows
            return rows.filter(~pl.col("workload_id").is_in(list(left_out)))

        copied = copy_rows(sources, target, wanted)
    return Merge(
        measurements=copied.measurements,
        heldout_measurements=inner_copied.measurements,
        repeated=copied.repeated + inner_copied.repeated,
        corrected=copied.corrected + inner_copied.corrected,
        left_out=sorted(left_out),
    )
