from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from costlib.collecting.plan import (
    CollectionPlan,
    HardwarePlan,
    HeldOutPlan,
    Mix,
    MutationPlan,
)
from costlib.collecting.planned import PlanProgress, collect_plan, retry_all_failed
from costlib.data.dataset import Dataset
from costlib.errors import InputError, UnknownNameError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.config import MeasureConfig

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)
MIX = Mix(evolved=0, mutated=0.5)


def plan(**changes: object) -> CollectionPlan:
    values = {
        "sources": ("matmul 32 32 32", "dense 4 32 32", "softmax 16 16"),
        "programs_per_task": 4,
        "min_flops": 0,
        "mix": MIX,
        "held_out": HeldOutPlan(networks=("dense 2 32 32",), programs_per_task=5),
    }
    return CollectionPlan.model_validate(values | changes)


def measured_sources(dataset: Dataset) -> set[str]:
    measured = dataset.scan().select("workload_id").unique()
    networks = dataset.scan("networks").join(measured, on="workload_id", how="semi")
    return set(networks.collect()["network"])


def test_held_out_tasks_lie_apart_and_their_look_alikes_nowhere(tmp_path: Path) -> None:
    seen: list[PlanProgress] = []
    dataset = collect_plan(plan(), tmp_path / "ds", config=QUICK, on_progress=seen.append)
    held_out = dataset.held_out()
    assert held_out is not None
    assert len(held_out.scan().collect()) == 5
    assert measured_sources(held_out) == {"dense 2 32 32"}
    assert measured_sources(dataset) == {"matmul 32 32 32", "softmax 16 16"}, (
        "dense 4 32 32 differs from the held-out task by its batch alone"
    )
    assert [(p.step, p.steps) for p in seen] == sorted((p.step, 2) for p in seen)

    seen.clear()
    collect_plan(plan(), tmp_path / "ds", config=QUICK, on_progress=seen.append)
    assert seen == [], "nothing was left to do"


def test_each_hardware_gets_its_share(tmp_path: Path) -> None:
    entries = (HardwarePlan(), HardwarePlan(cores=1, programs_per_task=2))
    wanted = plan(hardware=entries, held_out=HeldOutPlan(), sources=("matmul 32 32 32",))
    dataset = collect_plan(wanted, tmp_path / "ds", config=QUICK)
    counts = dataset.scan().group_by("hardware").agg(pl.len()).collect()
    assert sorted(counts["len"]) == [2, 4]


def test_programs_are_made_by_the_plans_model_without_being_told_how(
    tmp_path: Path, bundle: Bundle
) -> None:
    wanted = plan(
        sources=("matmul 32 32 32",),
        held_out=HeldOutPlan(),
        model=str(bundle.path),
        mix=Mix(evolved=0.5, mutated=0),
        mutations=MutationPlan(parents=2),
    )
    dataset = collect_plan(wanted, tmp_path / "ds", config=QUICK)
    origins = dataset.scan().collect()["origin"].to_list()
    assert 1 <= origins.count("evolved") <= 2 and len(origins) == 4
    assert set(dataset.scan("mutations").collect()["model"]) == {bundle.fingerprint}


def test_a_model_that_is_not_there_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    wanted = plan(model="nowhere", mix=Mix(evolved=0.5, mutated=0))
    with pytest.raises(UnknownNameError, match="nowhere"):
        collect_plan(wanted, tmp_path / "ds", config=QUICK)
    assert not (tmp_path / "ds").exists()


def test_networks_are_noted_with_their_weights(tmp_path: Path) -> None:
    few = plan(held_out=HeldOutPlan(), programs_per_task=1)
    dataset = collect_plan(few, tmp_path / "ds", config=QUICK)
    networks = dataset.scan("networks").collect()
    assert set(networks["network"]) == {"matmul 32 32 32", "dense 4 32 32", "softmax 16 16"}
    assert (networks["weight"] >= 1).all()


def test_time_is_up_at_once(tmp_path: Path) -> None:
    dataset = collect_plan(plan(minutes=1e-6), tmp_path / "ds", config=QUICK)
    assert len(dataset.scan("networks").collect()) == 3
    assert len(dataset.scan().collect()) == 0


def test_nothing_to_measure(tmp_path: Path) -> None:
    empty = plan(hardware=(HardwarePlan(programs_per_task=0),), held_out=HeldOutPlan())
    with pytest.raises(InputError, match="nothing to measure"):
        collect_plan(empty, tmp_path / "ds", config=QUICK)


def test_what_is_left_out_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sources = ("gelu 16 16", "matmul 8 8 8", "matmul 32 32 32")
    wanted = plan(sources=sources, min_flops=2000, held_out=HeldOutPlan(), programs_per_task=1)
    dataset = collect_plan(wanted, tmp_path / "data")
    assert measured_sources(dataset) == {"matmul 32 32 32"}
    assert " of gelu 16 16 is left out: it has nothing to tune" in caplog.text
    assert "1 of 2 tasks are left out: they have less than 2000 FLOP" in caplog.text


def test_all_failures_are_measured_again_by_what_the_dataset_holds(
    tmp_path: Path, hardware: Hardware, caplog: pytest.LogCaptureFixture
) -> None:
    sources = ("matmul 32 32 32", "softmax 16 16")
    held_out = HeldOutPlan(networks=("dense 2 32 32",), programs_per_task=1)
    hasty = QUICK.model_copy(update={"build_timeout_secs": 0.001})
    few = plan(sources=sources, programs_per_task=2, held_out=held_out)
    dataset = collect_plan(few, tmp_path / "ds", config=hasty)
    nested = dataset.held_out()
    assert nested is not None
    failed = pl.concat([one.scan().collect() for one in (dataset, nested)])
    assert failed["status"].to_list() == 5 * ["build_timeout"]

    seen: list[PlanProgress] = []
    retry_all_failed(tmp_path / "ds", [hardware], config=QUICK, on_progress=seen.append)
    again = pl.concat([one.scan().collect() for one in (dataset, nested)])
    assert again["program_id"].to_list() == failed["program_id"].to_list()
    assert again["status"].to_list() == 5 * ["ok"]
    assert [(p.step, p.done, p.total) for p in seen] == [(1, 2, 4), (1, 4, 4), (2, 1, 1)]
    assert "holds no failure of" not in caplog.text

    retry_all_failed(tmp_path / "ds", [hardware], config=QUICK)
    assert "holds no failure of" in caplog.text
