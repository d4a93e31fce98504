from __future__ import annotations

import json

from dataset_rows import CANARY, failed, hardware, measurement, mutation, network, sketch, workload

from costlib.data.dataset import Dataset
from costlib.data.summary import summarize


def test_an_empty_dataset(dataset: Dataset) -> None:
    summary = summarize(dataset)
    assert summary.measurements == summary.ok == summary.tasks == summary.programs == 0
    assert summary.hardware == []
    assert summary.bytes == 0
    assert summary.bytes_per_measurement is None
    assert summary.measurements_per_task_median == 0


def test_counts(dataset: Dataset) -> None:
    one, two = hardware(1), hardware(2)
    for machine in (one, two, hardware(3)):
        dataset.add_hardware(machine, CANARY)
    dataset.append_sketches([sketch()])
    dataset.append_workloads(
        [
            workload("a"),
            workload("b"),
            workload("c", name="softmax"),
            workload("never measured"),
        ]
    )
    dataset.append_networks(
        [network("bert_tiny", "a"), network("bert_base", "a"), network("bert_base", "b")]
    )
    rows = [measurement(i, "a") for i in range(4)] + [failed(9, workload_id="b")]
    dataset.append_measurements(one.hardware_id, rows)
    rows = [measurement(0, "a"), measurement(1, "c", origin="mutation")]
    dataset.append_measurements(two.hardware_id, rows)
    children = [mutation(rows[0], 1), mutation(rows[0], 8)]
    dataset.append_mutations(one.hardware_id, children)
    held_out = Dataset.create(dataset.path / "heldout")
    held_out.add_hardware(one, CANARY)
    held_out.append_measurements(one.hardware_id, [measurement(0, "z"), measurement(1, "z")])

    summary = summarize(dataset)
    size = sum(
        part.stat().st_size
        for part in dataset.path.rglob("*.parquet")
        if not part.is_relative_to(held_out.path)
    )
    assert summary.model_dump() == {
        "path": str(dataset.path),
        "schema_version": 1,
        "measurements": 7,
        "ok": 6,
        "heldout_measurements": 2,
        "heldout_tasks": 1,
        "mutation_parents": 1,
        "mutation_children": 2,
        "mutation_children_measured": 1,
        "tasks": 3,
        "programs": 6,
        "hardware": sorted(machine.hardware_id for machine in (one, two, hardware(3))),
        "measurements_by_hardware": {one.hardware_id: 5, two.hardware_id: 2},
        "measurements_by_status": {"ok": 6, "build_error": 1},
        "measurements_by_origin": {"random": 6, "mutation": 1},
        "tasks_by_operator": {"fused_matmul_add": 2, "softmax": 1},
        "tasks_by_network": {"bert_base": 2, "bert_tiny": 1},
        "measurements_per_task_min": 1,
        "measurements_per_task_median": 1.0,
        "measurements_per_task_max": 5,
        "bytes": size,
        "bytes_per_measurement": size / 7,
    }
    assert list(summary.measurements_by_status) == ["ok", "build_error"]
    assert json.loads(summary.model_dump_json())["measurements"] == 7
