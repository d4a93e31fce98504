"""Rows and hardware for the tests of datasets, consistent down to their hashes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.hardware import Hardware
from costlib.identity import content_id

CANARY = CanaryTimes(compute_s=0.001, memory_s=0.002)
WORKLOAD_ID = content_id("workload")
INSTRUCTIONS = [["GetSBlock", [], ["matmul", "main"], ["b0"]]]
SKETCH_ID = content_id(INSTRUCTIONS)


def hardware(num_cores: int = 2) -> Hardware:
    target = {"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": num_cores}
    return Hardware(
        kind="cpu", model="Test CPU", num_cores=num_cores, target=target, vector_bits=256
    )


def workload(workload_id: str = WORKLOAD_ID, **changes: Any) -> dict[str, Any]:
    return {
        "workload_id": workload_id,
        "name": "fused_matmul_add",
        "arguments": [{"dtype": "float32", "shape": [128, 128]}, {"dtype": "int8", "shape": []}],
        "flops": 1e6,
        "mod_json": None,
        "mod_script": "def main(): ...",
        **changes,
    }


def sketch() -> dict[str, Any]:
    return {
        "sketch_id": SKETCH_ID,
        "language": "metaschedule",
        "instructions": json.dumps(INSTRUCTIONS),
    }


def network(name: str = "bert_tiny", workload_id: str = WORKLOAD_ID) -> dict[str, Any]:
    return {"network": name, "workload_id": workload_id, "weight": 2}


def measurement(number: int, workload_id: str = WORKLOAD_ID, **changes: Any) -> dict[str, Any]:
    """Return a program that ran; ``number`` tells it from others."""
    decisions = [[0, [number, 4]]]
    latency_s = 0.001 + number * 1e-6
    return {
        "program_id": content_id(workload_id, SKETCH_ID, decisions),
        "workload_id": workload_id,
        "sketch_id": SKETCH_ID,
        "decisions": json.dumps(decisions),
        "status": "ok",
        "latency_s": latency_s,
        "run_secs": [latency_s, 1.1 * latency_s],
        "canary_compute": [0.001, 0.0011],
        "canary_memory": [0.002, 0.003],
        "raced": False,
        "build_secs": 0.2,
        "error": None,
        "origin": "random",
        "parent_id": None,
        "direction": None,
        "seed": 0,
        "measured_at": datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
        **changes,
    }


def failed(number: int, **changes: Any) -> dict[str, Any]:
    return measurement(
        number,
        changes.pop("workload_id", WORKLOAD_ID),
        **{
            "status": "build_error",
            "latency_s": None,
            "run_secs": [],
            "canary_compute": [],
            "canary_memory": [],
            "error": "no",
            **changes,
        },
    )


def mutation(parent: dict[str, Any], number: int, **changes: Any) -> dict[str, Any]:
    """Return the record that measurement ``number`` is what became of ``parent``."""
    child = measurement(number, parent["workload_id"])
    shared = ("program_id", "workload_id", "sketch_id", "decisions")
    return {
        **{column: child[column] for column in shared},
        "parent_id": parent["program_id"],
        "direction": "unroll",
        "parent_score": 0.5,
        "child_score": 0.6,
        "model": "test@0",
        **changes,
    }


def fill(dataset: Dataset, count: int = 4, *, parts: int = 1) -> str:
    """Append ``count`` programs in each of ``parts`` parts; return the hardware id."""
    machine = hardware()
    dataset.add_hardware(machine, CANARY)
    dataset.append_workloads([workload()])
    dataset.append_sketches([sketch()])
    dataset.append_networks([network()])
    dataset.append_mutations(machine.hardware_id, [mutation(measurement(0), 1)])
    for part in range(parts):
        rows = [measurement(part * count + i) for i in range(count)]
        dataset.append_measurements(machine.hardware_id, rows)
    return machine.hardware_id
