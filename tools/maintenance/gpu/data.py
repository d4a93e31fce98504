"""Steps that leave data and models behind: a dataset of the device, and a bundle trained on it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from costlib.collecting.collect import collect
from costlib.collecting.plan import Mix
from costlib.data.dataset import Dataset
from costlib.hub.train import train
from costlib.schema import Status
from tools.benchmarks.operators import heaviest_task
from tools.maintenance.gpu.bench import Bench, microseconds
from tools.maintenance.gpu.operators import CHECKED

BUNDLE = "cuda-gbdt"
_PROGRAMS = 32
_MINUTES = 2.5


def collected(bench: Bench) -> dict[str, Any]:
    """Measure random programs into the dataset ``OUT/dataset`` and say what it holds."""
    collect(
        [heaviest_task(operator, bench.hardware) for operator in CHECKED],
        bench.out / "dataset",
        programs_per_task=bench.programs(_PROGRAMS),
        hardware=bench.hardware,
        mix=Mix(evolved=0, mutated=0),
        config=bench.config(),
        minutes=_MINUTES,
        on_progress=lambda p: print(f"{p.done}/{p.total} {p.task}", flush=True),
    )
    dataset = Dataset.open(bench.out / "dataset")
    names = dataset.scan("workloads").select("workload_id", "name")
    records = dataset.scan().join(names, on="workload_id").collect()
    fine = records.filter(pl.col("status") == str(Status.OK))
    tasks = {
        f"{name} {workload_id[:6]}": {
            "programs": group.height,
            "best_us": microseconds(group["latency_s"].min()),
            "worst_us": microseconds(group["latency_s"].max()),
            "raced": int(group["raced"].sum()),
        }
        for (name, workload_id), group in fine.group_by("name", "workload_id", maintain_order=True)
    }
    return {
        "statuses": dict(Counter(records["status"])),
        "errors": dict(Counter(records["error"].drop_nulls()).most_common(10)),
        "tasks": tasks,
    }


def trained(bench: Bench) -> dict[str, Any]:
    """Train the bundle ``OUT/cuda-gbdt`` on what was collected."""
    dataset = Dataset.open(bench.out / "dataset")
    bundle = train(dataset, bench.out / BUNDLE, hardware=[bench.hardware.hardware_id], replace=True)
    seen = bundle.manifest.trained_on
    return {"tasks": seen.tasks, "programs": seen.programs, "metrics": bundle.manifest.metrics}
