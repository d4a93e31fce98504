from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from costlib.data.dataset import Dataset
from costlib.errors import BundleError
from costlib.hardware import Hardware
from costlib.hub.collect_priors import collect_priors
from costlib.hub.priors import FILE, BankedProgram, PriorBank, flat_extents
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.workloads import extract_tasks


@pytest.fixture(scope="module")
def bank(measured_dataset: Dataset) -> PriorBank:
    return collect_priors(measured_dataset, per_task=3)


@pytest.fixture(scope="module")
def space(hardware: Hardware) -> DesignSpace:
    return DesignSpace(extract_tasks("matmul 64 32 32", hardware)[0])


def nearest(
    bank: PriorBank, space: DesignSpace, count: int, **options: object
) -> list[BankedProgram]:
    extents = flat_extents(shape for _, shape in space.task.arguments)
    return bank.nearest(space.cluster, extents, count, **options)


def test_the_best_programs_of_each_task(bank: PriorBank, measured_dataset: Dataset) -> None:
    assert len(bank) <= 9
    assert bank.table["workload_id"].n_unique() == 3
    full = measured_dataset.scan().filter(pl.col("status") == "ok", ~pl.col("raced")).collect()
    best = full.group_by("workload_id").agg(pl.col("latency_s").min())
    first = bank.table.filter(rank=0).select("workload_id", "latency_s")
    assert sorted(first.iter_rows()) == sorted(best.iter_rows())


def test_only_the_tasks_asked_for(bank: PriorBank, measured_dataset: Dataset) -> None:
    one = str(bank.table["workload_id"][0])
    few = collect_priors(measured_dataset, per_task=3, only={one})
    assert few.table.equals(bank.table.filter(workload_id=one))


def test_look_alikes_share_a_cluster(bank: PriorBank, space: DesignSpace) -> None:
    matmuls = bank.table.filter(name="matmul")
    assert set(matmuls["cluster"]) == {space.cluster}
    assert set(bank.table.filter(name="softmax")["cluster"]).isdisjoint(matmuls["cluster"])


def test_the_nearest_come_first(bank: PriorBank, space: DesignSpace, hardware: Hardware) -> None:
    priors = nearest(bank, space, 4, hardware_id=hardware.hardware_id)
    assert [prior.rank for prior in priors] == sorted(prior.rank for prior in priors)
    assert priors[0].rank == priors[1].rank == 0
    assert 1 >= priors[0].similarity >= priors[1].similarity > 0.9
    ids = {sketch.sketch_id for sketch in space.sketches}
    assert {prior.sketch_id for prior in priors} <= ids


def test_a_prior_replays_on_its_own_task(bank: PriorBank, hardware: Hardware) -> None:
    own = DesignSpace(extract_tasks("matmul 32 32 32", hardware)[0])
    prior = nearest(bank, own, 1, hardware_id=hardware.hardware_id)[0]
    assert prior.similarity == pytest.approx(1)
    program = Program(own.task.workload_id, prior.sketch_id, prior.decisions)
    assert own.lower(program) is not None


def test_workloads_can_be_left_out(bank: PriorBank, hardware: Hardware) -> None:
    own = DesignSpace(extract_tasks("matmul 32 32 32", hardware)[0])
    others = nearest(bank, own, 9, exclude=[own.task.workload_id])
    assert 0 < len(others) <= 3
    assert all(prior.similarity < 1 for prior in others)


def test_saved_and_loaded(bank: PriorBank, tmp_path: Path) -> None:
    bank.save(tmp_path)
    assert PriorBank.load(tmp_path).table.equals(bank.table)
    (tmp_path / FILE).write_bytes(b"PAR1 no parquet")
    with pytest.raises(BundleError, match="no prior bank"):
        PriorBank.load(tmp_path)
    bank.table.drop("rank").write_parquet(tmp_path / FILE)
    with pytest.raises(BundleError, match="columns"):
        PriorBank.load(tmp_path)
