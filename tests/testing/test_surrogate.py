"""A device fitted to a small dataset that was really measured."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError, UnknownNameError
from costlib.hardware import Hardware
from costlib.measure.measurement import Candidate
from costlib.schema import Status
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.space.design_space import DesignSpace
from costlib.testing.surrogate import Surrogate
from costlib.tuning.run import TuningRun
from costlib.tuning.trials import Trials
from costlib.workloads import Task, extract_tasks

COUNT = 12


@pytest.fixture(scope="module")
def task(hardware: Hardware) -> Task:
    return extract_tasks("matmul 32 32 32", hardware)[0]


@pytest.fixture(scope="module")
def surrogate(measured_dataset: Dataset, hardware: Hardware, task: Task) -> Surrogate:
    return Surrogate.fitted([measured_dataset], hardware.hardware_id, [task.workload_id])


@pytest.fixture(scope="module")
def candidates(task: Task) -> list[Candidate]:
    drawn = itertools.islice(DesignSpace(task).sample(seed=1), COUNT)
    return [Candidate(program, schedule) for program, schedule in drawn]


def test_it_knows_its_tasks(surrogate: Surrogate, task: Task) -> None:
    assert [one.workload_id for one in surrogate.tasks] == [task.workload_id]
    assert surrogate.fit.tasks == 1


def test_measures_like_a_machine(
    surrogate: Surrogate, task: Task, candidates: list[Candidate]
) -> None:
    device = surrogate.device()
    found = device.measure(task, candidates)
    assert [one.program for one in found] == [one.program for one in candidates]
    ran = [one for one in found if one.status is Status.OK]
    assert ran
    for one in ran:
        assert one.latency_s is not None
        assert 0.5 < one.latency_s / device.truth_s[one.program.program_id] < 2
        assert len(one.run_secs) == len(one.canary_compute) == (1 if one.raced else 3)


def test_a_seed_is_one_landscape(
    surrogate: Surrogate, task: Task, candidates: list[Candidate]
) -> None:
    first, again, other = (surrogate.device(seed) for seed in (0, 0, 1))
    assert first.measure(task, candidates) == again.measure(task, candidates)
    other.measure(task, candidates)
    assert first.truth_s.keys() == other.truth_s.keys()
    assert first.truth_s != other.truth_s
    names = sorted(first.truth_s)
    truths = [[device.truth_s[name] for name in names] for device in (first, other)]
    assert spearmanr(*truths)[0] > 0


def test_the_truth_of_a_program_does_not_depend_on_its_company(
    surrogate: Surrogate, task: Task, candidates: list[Candidate]
) -> None:
    together, alone = surrogate.device(), surrogate.device()
    together.measure(task, candidates)
    for candidate in reversed(candidates):
        alone.measure(task, [candidate])
    assert alone.truth_s == pytest.approx(together.truth_s)


def test_slow_programs_are_timed_roughly(
    surrogate: Surrogate, task: Task, candidates: list[Candidate]
) -> None:
    never, always = (
        surrogate.device().measure(task, candidates, best_s) for best_s in (1e3, 1e-12)
    )
    assert not never[0].raced
    assert all(one.raced for one in always if one.status is Status.OK)


def test_invalid_programs_stay_invalid(
    surrogate: Surrogate, task: Task, candidates: list[Candidate]
) -> None:
    (found,) = surrogate.device().measure(task, [Candidate(candidates[0].program, None)])
    assert found.status is Status.INVALID


def test_a_search_runs_on_it(surrogate: Surrogate, task: Task, tmp_path: Path) -> None:
    device, seen = surrogate.device(), list[float]()
    run = TuningRun(
        [task],
        TaskScheduler(np.ones((1, 1))),
        surrogate.hardware,
        device,
        Trials(tmp_path, surrogate.hardware),
    )
    run.run(COUNT, on_batch=lambda b: seen.extend(m.latency_s or np.inf for m in b.measurements))
    assert len(seen) == COUNT
    assert run.searches[0].best_s == pytest.approx(min(seen), rel=0.2)


def test_a_task_without_data_is_one_line(surrogate: Surrogate, matmul: Task) -> None:
    with pytest.raises(InputError, match="surrogate has no data of matmul") as error:
        surrogate.device().measure(matmul, [])
    assert "\n" not in str(error.value)


def test_a_fit_to_tasks_without_data_is_refused(
    measured_dataset: Dataset, hardware: Hardware, matmul: Task
) -> None:
    with pytest.raises(DatasetError, match=f"no program of task {matmul.workload_id}"):
        Surrogate.fitted([measured_dataset], hardware.hardware_id, [matmul.workload_id])


def test_it_learns_from_the_chosen_workloads_alone(
    measured_dataset: Dataset, hardware: Hardware, task: Task
) -> None:
    where, asked = ([measured_dataset], hardware.hardware_id), [task.workload_id]
    others = {*measured_dataset.scan().collect()["workload_id"]}.difference(asked)
    assert Surrogate.fitted(*where, asked, only=asked).fit.tasks == 1
    with pytest.raises(DatasetError, match=f"no program of task {task.workload_id}"):
        Surrogate.fitted(*where, asked, only=others)


def test_a_hardware_without_data_is_refused(measured_dataset: Dataset, task: Task) -> None:
    with pytest.raises(UnknownNameError, match="unknown hardware"):
        Surrogate.fitted([measured_dataset], "a-toaster", [task.workload_id])
