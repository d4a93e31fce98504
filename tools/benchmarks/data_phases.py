"""The phases of :mod:`tools.benchmarks.data`; each takes (folder, source, number of programs).

Size 0 is the source itself.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.features.store import FeatureStore, ProgramFeatures, append_features
from costlib.models.gbdt import GbdtConfig
from costlib.schema import MEASUREMENTS
from costlib.space.program import Sketch, fill_sketch
from costlib.training.assemble import assemble
from costlib.training.batches import batches
from costlib.training.out_of_core import fit_gbdt
from costlib.training.protocol import most_measured_hardware

PROGRAMS_PER_TASK = 4_000
PROGRAMS_PER_PART = 1_000
NUM_TREES = 10


def generate(folder: Path, source: Path, size: int) -> dict[str, Any]:
    """Write the synthetic dataset; what is there already stays."""
    real, target = Dataset.open(source), Dataset.create(folder / "dataset")
    hardware_id = most_measured_hardware(real)
    target.add_hardware(real.hardware()[hardware_id], real.canary(hardware_id))
    target.append_sketches(real.scan("sketches").collect().to_dicts())
    assemble(real, hardware=[hardware_id])  # With its features.
    features, store = FeatureStore(real, hardware_id), FeatureStore(target, hardware_id)
    ran = real.scan().filter((pl.col("hardware") == hardware_id) & (pl.col("status") == "ok"))
    measured = ran.drop("hardware").unique("program_id").sort("program_id").collect()
    by_task = measured.partition_by("workload_id", as_dict=True)
    workloads = {w["workload_id"]: w for w in real.scan("workloads").collect().to_dicts()}
    known = set(target.scan().select(pl.col("workload_id").unique()).collect()["workload_id"])
    per_task = min(PROGRAMS_PER_TASK, size // 5)
    bases = sorted(base_id for (base_id,) in by_task)
    tasks = {f"{t:016x}": bases[t % len(bases)] for t in range(size // per_task)}
    target.append_workloads([workloads[tasks[t]] | {"workload_id": t} for t in tasks])
    for workload_id in sorted(tasks.keys() - known):
        base_id = tasks[workload_id]
        rng = np.random.default_rng(int(workload_id, 16))
        usable = features.known(base_id).filter(pl.col("num_stores") > 0).select("program_id")
        base = by_task[(base_id,)].join(usable, on="program_id", how="semi").sort("program_id")
        stores, offsets, nests = features.select(base_id, base["program_id"])
        picks = rng.integers(len(base), size=per_task)
        program_ids = sorted(f"{number:016x}" for number in rng.integers(2**63, size=per_task))
        for first in range(0, per_task, PROGRAMS_PER_PART):
            part = slice(first, first + PROGRAMS_PER_PART)
            noisy = _noisy([stores[offsets[i] : offsets[i + 1]] for i in picks[part]], rng)
            described = list(map(ProgramFeatures, noisy, nests[picks[part]]))
            append_features(store.folder, target.scratch, workload_id, program_ids[part], described)
        rows = base.select(MEASUREMENTS.names)[picks].with_columns(
            pl.Series("program_id", program_ids),
            pl.lit(workload_id).alias("workload_id"),
            pl.col("latency_s") * np.exp(rng.normal(0, 0.05, per_task)),
        )
        target.append_table("measurements", rows.to_arrow().cast(MEASUREMENTS), hardware_id)
    return {
        "programs": size,
        "measurement_bytes_per_program": _bytes(target.path / "measurements", size),
        "feature_bytes_per_program": _bytes(target.path / "features", size),
    }


def stream(folder: Path, source: Path, size: int) -> dict[str, Any]:
    """Go through all batches."""
    largest = rows = 0
    for data in batches(Dataset.open(folder / "dataset")):
        pooled = data.batch.pooled()
        rows += len(pooled)
        largest = max(largest, len(pooled))
    assert rows == size
    return {"programs": rows, "largest_batch": largest}


def train(folder: Path, source: Path, size: int) -> dict[str, Any]:
    """Fit a GBDT."""
    fit_gbdt(Dataset.open(folder / "dataset"), config=GbdtConfig(num_trees=NUM_TREES))
    return {"programs": size, "trees": NUM_TREES}


def write_formats(folder: Path, source: Path, size: int) -> dict[str, Any]:
    """Write the programs as others keep them."""
    dataset = _dataset(folder, source, size)
    data = assemble(dataset)
    ends = data.batch.offsets[1:-1]
    arrays = np.split(data.batch.stores, ends)
    tenset: dict[str, Any] = {"features": {}, "throughputs": {}, "min_latency": {}}
    for group, task in enumerate(data.tasks):
        mine = np.flatnonzero(data.groups == group)
        tenset["features"][task] = [arrays[i].copy() for i in mine]
        tenset["throughputs"][task] = data.labels[mine]
        tenset["min_latency"][task] = data.latency_s[mine].min()
    (folder / "tenset.pkl").write_bytes(pickle.dumps(tenset))

    sketches = {
        sketch_id: Sketch.from_json(text)
        for sketch_id, text in dataset.scan("sketches")
        .select("sketch_id", "instructions")
        .collect()
        .iter_rows()
    }
    workloads = dataset.scan("workloads").collect().to_dicts()
    index = {workload["workload_id"]: i for i, workload in enumerate(workloads)}
    arguments = {
        workload["workload_id"]: [["TENSOR", a["dtype"], a["shape"]] for a in workload["arguments"]]
        for workload in workloads
    }
    target = next(iter(dataset.hardware().values())).target
    with (folder / "tuning_record.json").open("w") as file:
        for row in dataset.scan().filter(pl.col("status") == "ok").collect().iter_rows(named=True):
            trace = fill_sketch(sketches[row["sketch_id"]], json.loads(row["decisions"]))
            workload_id = row["workload_id"]
            body = [trace, row["run_secs"], target, arguments[workload_id]]
            file.write(json.dumps([index[workload_id], body], separators=(",", ":")) + "\n")
    return {
        "programs": len(data.labels),
        "measurement_bytes_per_program": _bytes(dataset.path / "measurements", len(data.labels)),
        "feature_bytes_per_program": _bytes(dataset.path / "features", len(data.labels)),
        "pickle_bytes_per_program": _bytes(folder / "tenset.pkl", len(data.labels)),
        "metaschedule_json_bytes_per_program": _bytes(
            folder / "tuning_record.json", len(data.labels)
        ),
    }


def load_costlib(folder: Path, source: Path, size: int) -> dict[str, Any]:
    """Load everything as arrays."""
    return {"programs": len(assemble(_dataset(folder, source, size)).labels)}


def load_pickle(folder: Path, source: Path, size: int) -> dict[str, Any]:
    """Load the file that :func:`write_formats` wrote."""
    with (folder / "tenset.pkl").open("rb") as file:
        loaded = pickle.load(file)
    return {"programs": sum(len(task) for task in loaded["features"].values())}


def load_metaschedule_json(folder: Path, source: Path, size: int) -> dict[str, Any]:
    """Parse the file that :func:`write_formats` wrote."""
    with (folder / "tuning_record.json").open() as file:
        records = [json.loads(line) for line in file]
    return {"programs": len(records)}


def _noisy(programs: list[Any], rng: np.random.Generator) -> list[Any]:
    stores = np.concatenate(programs)
    moved = np.flatnonzero((stores != 0) & (stores != 1) & (rng.random(stores.shape, "f4") < 0.25))
    stores.ravel()[moved] *= rng.random(len(moved), "f4") * np.float32(0.2) + np.float32(0.9)
    return np.split(stores, np.cumsum([len(program) for program in programs])[:-1])


def _dataset(folder: Path, source: Path, size: int) -> Dataset:
    """Open the synthetic dataset, or the source for size 0."""
    return Dataset.open(folder / "dataset" if size else source)


def _bytes(path: Path, size: int) -> float:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return round(sum(file.stat().st_size for file in files) / size, 1)
