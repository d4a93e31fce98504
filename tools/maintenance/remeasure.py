"""Measure programs of a dataset again: for when the same programs have become other machine code.

    python -m tools.maintenance.remeasure datasets/zoo "T\\.(exp|erf|tanh)\\(" --out anew
    python -m tools.maintenance.remeasure datasets/zoo "T\\.(exp|erf|tanh)\\(" --out anew --replace

All programs of the workloads whose TVMScript matches are measured into a dataset of their own, on
each hardware that this machine can be, and in the held-out dataset, too. Called again it goes on.
With ``--replace`` what was measured takes the place of what it was before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from costlib.data.compact import sort_rows
from costlib.data.dataset import Dataset
from costlib.data.parts import list_parts, read_part, write_part
from costlib.data.records import measurement_row
from costlib.data.task_tables import task_of
from costlib.files import locked
from costlib.hardware import Hardware
from costlib.measure.measurement import Candidate
from costlib.measure.measurer import Measurer
from costlib.schema import MEASUREMENTS, Origin
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from tools.evidence.labels import is_here

BATCH = 48


def main() -> None:
    """Measure what is missing, or put it in its place."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("pattern", help="regular expression that the workloads' TVMScript matches")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--replace", action="store_true")
    arguments = parser.parse_args()
    given = Dataset.open(arguments.dataset)
    held_out = given.held_out()
    for name, dataset in {"train": given, "held_out": held_out}.items():
        if dataset is None:
            continue
        anew = Dataset.create(arguments.out / name)
        workloads = dataset.scan("workloads").filter(
            pl.col("mod_script").str.contains(arguments.pattern)
        )
        for hardware in sorted(dataset.hardware().values(), key=lambda h: -h.num_cores):
            if arguments.replace:
                replace(dataset, anew, hardware.hardware_id)
            elif is_here(hardware):
                measure(dataset, anew, hardware, workloads.collect())


def measure(dataset: Dataset, anew: Dataset, hardware: Hardware, workloads: pl.DataFrame) -> None:
    """Measure the programs of workloads that are in one dataset but not yet in the other."""
    name = hardware.hardware_id
    known = list(anew.measured(name))
    rows = (
        dataset.scan()
        .filter(pl.col("hardware") == name, ~pl.col("program_id").is_in(known))
        .join(workloads.lazy().select("workload_id"), on="workload_id", how="semi")
        .sort("latency_s", nulls_last=True)
        .collect()
    )
    if rows.is_empty():
        return
    anew.add_hardware(hardware, dataset.canary(name))
    done, started = 0, time.monotonic()
    with Measurer(hardware, reference=dataset.canary(name)) as measurer:
        for (workload_id,), programs in rows.group_by("workload_id", maintain_order=True):
            (row,) = workloads.filter(pl.col("workload_id") == workload_id).to_dicts()
            space = DesignSpace(task_of(row, hardware))
            for batch in again(space, programs, measurer):
                anew.append_measurements(name, batch)
                done += len(batch)
                rate = done / (time.monotonic() - started)
                print(f"{name} {done}/{len(rows)}, {60 * rate:.0f} a minute", flush=True)


def again(
    space: DesignSpace, programs: pl.DataFrame, measurer: Measurer
) -> Iterator[list[dict[str, Any]]]:
    """Yield rows of programs of a task, measured again, a batch at a time."""
    best_s: float | None = None
    for part in programs.iter_slices(BATCH):
        rows = part.to_dicts()
        made = [Program.from_row(r["workload_id"], r["sketch_id"], r["decisions"]) for r in rows]
        candidates = [Candidate(program, space.lower(program)) for program in made]
        found = measurer.measure(space.task, candidates, best_s)
        best_s = min((m.latency_s for m in found if m.latency_s is not None), default=best_s)
        yield [
            measurement_row(m, r["seed"], Origin(r["origin"]), r["parent_id"], r["direction"])
            for m, r in zip(found, rows, strict=True)
        ]


def replace(dataset: Dataset, anew: Dataset, hardware_id: str) -> None:
    """Put measurements in the place of older ones of the same programs."""
    new = anew.scan().filter(pl.col("hardware") == hardware_id).drop("hardware").collect()
    folder = dataset.path / "measurements" / f"hardware={hardware_id}"
    with locked(dataset.path / "measurements"):
        old = list_parts(folder)
        rows = pa.concat_tables(read_part(part, MEASUREMENTS) for part in old)
        again = pc.is_in(rows["program_id"], pa.array(new["program_id"].to_list(), pa.string()))
        merged = pa.concat_tables(
            [rows.filter(pc.invert(again)), new.to_arrow().cast(MEASUREMENTS)]
        )
        names = [part.name for part in old]
        write_part(
            folder, sort_rows("measurements", merged), MEASUREMENTS, dataset.scratch, replaces=names
        )
    print(json.dumps({"hardware": hardware_id, "replaced": len(new), "rows": len(merged)}))


if __name__ == "__main__":
    main()
