from __future__ import annotations

from pathlib import Path

import pytest
from dataset_rows import (
    CANARY,
    WORKLOAD_ID,
    failed,
    fill,
    hardware,
    measurement,
    mutation,
    network,
    sketch,
    workload,
)

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.data.merge import merge
from costlib.data.verify import verify
from costlib.errors import DatasetError, InputError

ID = hardware().hardware_id


@pytest.fixture
def other(tmp_path: Path) -> Dataset:
    return Dataset.create(tmp_path / "other")


def ids(dataset: Dataset) -> set[str]:
    return set(dataset.scan().collect()["program_id"])


def test_each_program_once(dataset: Dataset, other: Dataset, tmp_path: Path) -> None:
    fill(dataset, count=3)
    fill(other, count=5)
    other.add_hardware(hardware(7), CANARY)
    other.append_measurements(hardware(7).hardware_id, [measurement(0), failed(1)])
    other.append_networks([network("gpt")])
    other.append_mutations(ID, [mutation(measurement(0), 9)])
    done = merge([dataset.path, other.path], tmp_path / "out")
    merged = Dataset.open(tmp_path / "out")
    assert (done.measurements, done.repeated, done.corrected) == (7, 3, 0)
    assert verify(merged) == []
    assert ids(merged) == ids(other)
    assert set(merged.hardware()) == {ID, hardware(7).hardware_id}
    counts = {table: merged.scan(table).collect().height for table in ("networks", "mutations")}
    assert counts == {"networks": 2, "mutations": 2}
    again = merge([dataset.path, other.path], tmp_path / "out")
    assert (again.measurements, again.repeated) == (0, 10)


def test_latencies_are_corrected_to_the_fastest_canaries(
    dataset: Dataset, other: Dataset, tmp_path: Path
) -> None:
    slower = CanaryTimes(compute_s=2 * CANARY.compute_s, memory_s=CANARY.memory_s)
    for one, reference, numbers in ((dataset, slower, (1, 2)), (other, CANARY, (3, 4))):
        one.add_hardware(hardware(), reference)
        one.append_workloads([workload()])
        one.append_sketches([sketch()])
        canaries = {"canary_compute": [reference.compute_s] * 2}
        one.append_measurements(ID, [measurement(n, **canaries) for n in numbers])
        assert verify(one) == []
    done = merge([dataset.path, other.path], tmp_path / "out")
    merged = Dataset.open(tmp_path / "out")
    assert done.corrected == 2
    assert merged.canary(ID) == CANARY
    assert [problem for problem in verify(merged) if "drifted" not in problem.what] == []
    latencies = merged.scan().collect().sort("decisions")["latency_s"].to_list()
    assert latencies[0] == pytest.approx(0.001001 * 1.05 / 2)
    assert latencies[2:] == other.scan().collect()["latency_s"].to_list()


def test_an_output_with_another_reference_is_refused(
    dataset: Dataset, other: Dataset, tmp_path: Path
) -> None:
    fill(dataset)
    other.add_hardware(hardware(), CanaryTimes(compute_s=1.0, memory_s=1.0))
    with pytest.raises(DatasetError, match=r"another canary reference.*choose a new folder"):
        merge([dataset.path], other.path)
    assert other.scan().collect().height == 0


def test_imported_rows_are_all_kept_once(dataset: Dataset, other: Dataset, tmp_path: Path) -> None:
    for one, seconds in ((dataset, (0.002, 0.003)), (other, (0.003, 0.004))):
        fill(one, count=1)
        rows = [
            measurement(
                1,
                origin="imported",
                latency_s=s,
                run_secs=[s],
                canary_compute=[],
                canary_memory=[],
            )
            for s in seconds
        ]
        one.append_measurements(ID, rows)
    for _ in range(2):
        merge([dataset.path, other.path], tmp_path / "out")
        merged = Dataset.open(tmp_path / "out")
        assert verify(merged) == []
        latencies = merged.scan().collect()["latency_s"]
        assert sorted(latencies) == [0.001, 0.002, 0.003, 0.004]


def test_held_out_tasks_stay_apart(dataset: Dataset, other: Dataset, tmp_path: Path) -> None:
    fill(dataset)
    fill(Dataset.create(other.path / "heldout"), count=3)
    other.append_workloads([workload("mine", name="softmax")])
    done = merge([dataset.path, other.path], tmp_path / "out")
    assert done.left_out == [WORKLOAD_ID]
    assert (done.measurements, done.heldout_measurements) == (0, 3)
    merged = Dataset.open(tmp_path / "out")
    assert verify(merged) == []
    assert "mine" in set(merged.scan("workloads").collect()["workload_id"])
    with pytest.raises(InputError, match=r"heldout holds out.*choose a new folder"):
        merge([other.path], dataset.path)


def test_a_dataset_into_itself(dataset: Dataset) -> None:
    with pytest.raises(InputError, match="itself to be merged"):
        merge([dataset.path], dataset.path)
