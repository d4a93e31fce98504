from __future__ import annotations

import shutil
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from forked import Popen

from costlib.data.dataset import Dataset
from costlib.features import build, worker
from costlib.features.build import build_features
from costlib.features.lowered import STORE_FEATURES
from costlib.features.store import FeatureStore, ProgramFeatures
from costlib.features.version import FEATURE_VERSION
from costlib.hardware import Hardware

JOB_PROGRAMS = 4

BUILDER = f"""
import sys
from costlib.data.dataset import Dataset
from costlib.features import build
build._FEW_PROGRAMS, build._JOB_PROGRAMS = 0, {JOB_PROGRAMS}
build.build_features(Dataset.open(sys.argv[1]), sys.argv[2])
"""


BUFFERS = (57, 5, 18)
"""Of a store's features: where those of its buffers begin, of how many, how many of each."""


@pytest.fixture
def copy(dataset: Dataset, tmp_path: Path) -> Dataset:
    without = shutil.ignore_patterns("features")
    return Dataset.open(shutil.copytree(dataset.path, tmp_path / "copy", ignore=without))


def start_builder(dataset: Dataset, hardware: Hardware) -> Popen:
    command = [sys.executable, "-c", BUILDER, str(dataset.path), hardware.hardware_id]
    return Popen(command)


def parts(dataset: Dataset, hardware: Hardware) -> list[Path]:
    return list(FeatureStore(dataset, hardware.hardware_id).folder.rglob("part-*"))


def content(dataset: Dataset, hardware: Hardware) -> dict[str, ProgramFeatures]:
    """What the store holds now, by program."""
    store = FeatureStore(dataset, hardware.hardware_id)
    found = {}
    for workload_id in dataset.scan("workloads").collect()["workload_id"]:
        known = store.known(workload_id)
        assert known["program_id"].is_unique().all()
        program_ids = known.filter(pl.col("num_stores") > 0)["program_id"]
        if len(program_ids):
            stores, offsets, nests = store.select(workload_id, program_ids)
            arrays = [stores[first:last] for first, last in pairwise(offsets)]
            found |= dict(zip(program_ids, map(ProgramFeatures, arrays, nests), strict=True))
    return found


def assert_same(found: dict[str, ProgramFeatures], expected: dict[str, ProgramFeatures]) -> None:
    assert found.keys() == expected.keys()
    for program_id, (stores, nests) in expected.items():
        np.testing.assert_array_equal(in_order(found[program_id].stores), in_order(stores))
        np.testing.assert_array_equal(found[program_id].nests, nests)


def in_order(stores: np.ndarray) -> np.ndarray:
    """Sort each store's buffers: TVM has those that move as many bytes in the order of a hash."""
    first, count, width = BUFFERS
    last = first + count * width
    buffers = stores[:, first:last].reshape(len(stores), count, width)
    ordered = [sorted(map(tuple, store)) for store in buffers]
    flat = np.array(ordered).reshape(len(stores), -1)
    return np.hstack([stores[:, :first], flat, stores[:, last:]])


@pytest.fixture(scope="module")
def expected(
    dataset: Dataset, hardware: Hardware, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ProgramFeatures]:
    without = shutil.ignore_patterns("features")
    folder = tmp_path_factory.mktemp("features") / "ds"
    built = Dataset.open(shutil.copytree(dataset.path, folder, ignore=without))
    build_features(built, hardware.hardware_id)
    return content(built, hardware)


def test_every_program_that_ran_has_features(copy: Dataset, hardware: Hardware) -> None:
    seen: list[tuple[int, int]] = []
    build_features(copy, hardware.hardware_id, lambda done, total: seen.append((done, total)))
    found = content(copy, hardware)
    ran = copy.scan().filter(pl.col("status") == "ok").collect()
    assert set(found) == set(ran["program_id"])
    assert seen[-1] == (len(found), len(found))
    for stores, nests in found.values():
        assert nests.dtype == np.float32
        assert np.isfinite(nests).all()
        assert stores.dtype == np.float32
        assert stores.shape[1] == STORE_FEATURES
        assert len(stores) >= 1


def test_only_the_programs_of_chosen_workloads_are_looked_at(
    copy: Dataset, hardware: Hardware
) -> None:
    chosen, *others = copy.scan().select("workload_id").unique().collect()["workload_id"]
    assert others
    store = build_features(copy, hardware.hardware_id, only=[chosen])
    assert len(store.known(chosen))
    assert not any(len(store.known(other)) for other in others)


def test_features_are_computed_once(
    copy: Dataset, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    build_features(copy, hardware.hardware_id)
    before = parts(copy, hardware)

    def fail(_: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(build, "attempt", fail)
    build_features(copy, hardware.hardware_id)
    assert parts(copy, hardware) == before


def test_deleted_features_come_back_the_same(
    copy: Dataset, hardware: Hardware, expected: dict[str, ProgramFeatures]
) -> None:
    build_features(copy, hardware.hardware_id)
    shutil.rmtree(copy.path / "features" / FEATURE_VERSION)
    build_features(copy, hardware.hardware_id)
    assert_same(content(copy, hardware), expected)


def test_processes_build_bounded_parts_of_one_task(
    copy: Dataset,
    hardware: Hardware,
    expected: dict[str, ProgramFeatures],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(build, "_FEW_PROGRAMS", 0)
    monkeypatch.setattr(build, "_JOB_PROGRAMS", JOB_PROGRAMS)
    build_features(copy, hardware.hardware_id)
    for part in parts(copy, hardware):
        assert 0 < pq.read_metadata(part).num_rows <= JOB_PROGRAMS
    assert_same(content(copy, hardware), expected)


def test_a_build_killed_in_the_middle_goes_on(
    copy: Dataset, hardware: Hardware, expected: dict[str, ProgramFeatures]
) -> None:
    builder = start_builder(copy, hardware)
    while not parts(copy, hardware):
        assert builder.poll() is None
        time.sleep(0.01)
    builder.kill()
    builder.wait()
    kept = content(copy, hardware)
    assert 0 < len(kept) < len(expected)
    build_features(copy, hardware.hardware_id)
    assert_same(content(copy, hardware), expected)


def test_two_builds_at_once(
    copy: Dataset, hardware: Hardware, expected: dict[str, ProgramFeatures]
) -> None:
    builders = [start_builder(copy, hardware) for _ in range(2)]
    assert [builder.wait(120) for builder in builders] == [0, 0]
    assert_same(content(copy, hardware), expected)


def test_what_cannot_be_replayed_is_tried_once(
    copy: Dataset,
    hardware: Hardware,
    expected: dict[str, ProgramFeatures],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran = copy.scan().filter(pl.col("status") == "ok").drop("hardware")
    row = ran.head(1).collect().row(0, named=True)
    row |= {"program_id": "bad", "sketch_id": "of another TVM"}
    copy.append_measurements(hardware.hardware_id, [row])
    build_features(copy, hardware.hardware_id)
    assert "1 of " in caplog.text
    known = FeatureStore(copy, hardware.hardware_id).known(row["workload_id"])
    assert dict(known.iter_rows())["bad"] == 0
    monkeypatch.setattr(build, "attempt", None)
    build_features(copy, hardware.hardware_id)
    assert content(copy, hardware).keys() == expected.keys()


def test_a_program_that_fails_costs_itself_only(
    copy: Dataset,
    hardware: Hardware,
    expected: dict[str, ProgramFeatures],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    culprit = sorted(expected)[5]

    def compute(job: worker.Job) -> worker.Answer:
        if culprit in {program_id for program_id, _, _ in job.programs}:
            raise RuntimeError("no")
        return original(job)

    original = worker.compute
    monkeypatch.setattr(worker, "compute", compute)
    build_features(copy, hardware.hardware_id)
    assert content(copy, hardware).keys() == expected.keys() - {culprit}


def test_a_worker_that_dies_is_replaced(copy: Dataset, hardware: Hardware) -> None:
    store = FeatureStore(copy, hardware.hardware_id)
    workload_id = copy.scan("workloads").collect()["workload_id"][0]
    job = next(build._jobs(copy, hardware.hardware_id, store, {workload_id}))
    with build._Worker() as process:
        process._process.kill()
        process._process.wait()
        assert "died" in (process.compute(job).error or "")
        assert process.compute(job).replayed == len(job.programs)
