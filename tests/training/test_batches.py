from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, UnknownNameError
from costlib.features import programs
from costlib.features.batch import select
from costlib.hardware import Hardware
from costlib.models.base import View
from costlib.training.batches import TrainingData, assemble, batches, concatenate


@pytest.fixture
def copy(dataset: Dataset, tmp_path: Path) -> Dataset:
    assemble(dataset)  # With its features.
    return Dataset.open(shutil.copytree(dataset.path, tmp_path / "copy"))


def assert_same(found: TrainingData, expected: TrainingData) -> None:
    assert found.tasks == expected.tasks
    np.testing.assert_array_equal(found.batch.pooled(), expected.batch.pooled())
    np.testing.assert_array_equal(found.batch.stores, expected.batch.stores)
    np.testing.assert_array_equal(found.latency_s, expected.latency_s)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.groups, expected.groups)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(size=st.integers(1, 100), at_once=st.integers(1, 100))
def test_streaming_gives_what_is_in_memory(dataset: Dataset, size: int, at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "_PROGRAMS_AT_ONCE", at_once)
        parts = list(batches(dataset, programs=size))
    assert_same(concatenate(parts), assemble(dataset))
    tasks = [task for part in parts for task in part.tasks]
    assert len(set(tasks)) == len(tasks)
    for part in parts:
        sizes = np.bincount(part.groups, minlength=len(part.tasks))
        assert len(part.labels) - sizes[-1] < size
        assert len(part.labels) >= size or part is parts[-1]


def test_labels_are_the_best_latency_over_the_own(dataset: Dataset) -> None:
    data = assemble(dataset)
    ran = dataset.scan().filter(pl.col("status") == "ok").collect()
    for group, (workload_id, hardware_id) in enumerate(data.tasks):
        rows = ran.filter(
            (pl.col("workload_id") == workload_id) & (pl.col("hardware") == hardware_id)
        ).sort("program_id")
        latency_s = rows["latency_s"].to_numpy()
        mine = data.groups == group
        np.testing.assert_array_equal(data.latency_s[mine], latency_s)
        np.testing.assert_array_equal(data.labels[mine], latency_s.min() / latency_s)


def test_a_program_measured_again_counts_once_with_its_median(
    copy: Dataset, hardware: Hardware
) -> None:
    before = assemble(copy)
    row = copy.scan().filter(pl.col("status") == "ok").drop("hardware").head(1).collect()
    (record,) = row.iter_rows(named=True)
    latency_s = record["latency_s"]
    again = [{**record, "latency_s": latency_s * factor} for factor in (3.0, 5.0)]
    copy.append_measurements(hardware.hardware_id, again)
    after = assemble(copy)
    assert len(after.labels) == len(before.labels)
    changed = np.flatnonzero(after.latency_s != before.latency_s)
    assert after.latency_s[changed] == pytest.approx([latency_s * 3])


def test_the_best_counts_even_if_it_cannot_be_replayed(copy: Dataset, hardware: Hardware) -> None:
    before = assemble(copy)
    task = before.tasks[0][0]
    row = copy.scan().filter((pl.col("status") == "ok") & (pl.col("workload_id") == task))
    (record,) = row.drop("hardware").head(1).collect().iter_rows(named=True)
    best_s = before.latency_s[before.groups == 0].min() / 2
    record |= {"program_id": "0" * 16, "decisions": "[]", "latency_s": best_s}
    copy.append_measurements(hardware.hardware_id, [record])
    after = assemble(copy)
    np.testing.assert_allclose(after.labels[after.groups == 0].max(), 0.5)
    assert len(after.labels) == len(before.labels)


@pytest.mark.parametrize("latency_s", [np.nan, np.inf, 0.0, -1.0])
def test_latencies_that_make_no_sense_are_refused(
    copy: Dataset, hardware: Hardware, latency_s: float
) -> None:
    row = copy.scan().filter(pl.col("status") == "ok").drop("hardware").head(1).collect()
    (record,) = row.iter_rows(named=True)
    copy.append_measurements(hardware.hardware_id, [{**record, "latency_s": latency_s}])
    with pytest.raises(DatasetError, match=f"program {record['program_id']} ran on"):
        list(batches(copy))


def test_hardware_can_be_chosen(dataset: Dataset, hardware: Hardware) -> None:
    (data,) = batches(dataset, hardware=[hardware.hardware_id])
    assert_same(data, assemble(dataset))
    assert list(batches(dataset, hardware=[])) == []
    with pytest.raises(UnknownNameError, match="hardware 'nope'"):
        list(batches(dataset, hardware=["nope"]))


@pytest.mark.parametrize("view", ["statements", "schedule"])
def test_what_was_measured_with_cold_weights_is_apart(copy: Dataset, view: View) -> None:
    warm = assemble(copy, view=view)
    rows = copy.scan().filter(pl.col("status") == "ok").sort("program_id").collect()
    (workload_id, hardware_id), *_ = warm.tasks
    chosen = rows.filter(pl.col("workload_id") == workload_id)
    cold = chosen.with_columns(pl.col("latency_s") * 3, cache=pl.lit("cold_weights")).head(4)
    copy.append_measurements(hardware_id, cold.drop("hardware").to_dicts())
    both = assemble(copy, view=view)
    assert both.tasks == [*warm.tasks, (workload_id, hardware_id)]
    new = both.groups == len(warm.tasks)
    assert_same(rows_of(both, ~new), replace(warm, tasks=both.tasks))
    np.testing.assert_allclose(both.latency_s[new], cold["latency_s"])
    assert both.labels[new].max() == 1
    column = both.batch.names.index("task.cold_weights")
    assert both.batch.context[:, column].tolist() == new.astype(float).tolist()


def rows_of(data: TrainingData, chosen: np.ndarray) -> TrainingData:
    batch = select(data.batch, chosen)
    return TrainingData(
        batch, data.latency_s[chosen], data.labels[chosen], data.groups[chosen], data.tasks
    )
