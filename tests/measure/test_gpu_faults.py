"""A GPU that hangs, is full, or is gone: one record or one line each. A stand-in answers for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from costlib.errors import MeasureError
from costlib.hardware import find_hardware
from costlib.measure import measurer as measurer_module
from costlib.measure.config import Job, Outcome, RunJob
from costlib.measure.measurement import Candidate
from costlib.schema import CONFIRMED, Status
from costlib.space.design_space import DesignSpace
from costlib.testing.simulated_measurer import SimulatedMeasurer
from costlib.workloads import Task, extract_tasks

GPU = find_hardware("cuda:sm_90").simulated()
HANGS = Outcome(error="killed after 10 s", timed_out=True)
FULL = Outcome(error="RuntimeError: CUDA: out of memory")
LOST = Outcome(error="RuntimeError: CUDA: unspecified launch failure")


class StandIn(SimulatedMeasurer):
    """Gives these answers to runs, one after the other, and then good ones; builds source."""

    def __init__(self, *answers: Outcome, known_good: Outcome | None = None) -> None:
        super().__init__(GPU)
        self._leaves_source = True
        self._answers: Iterator[Outcome] = iter(answers)
        self._known_good = known_good
        self.runs = 0

    def run_job(self, job: Job) -> Outcome:
        """Run what is known to be good."""
        if isinstance(job, RunJob) and self._known_good is not None:
            return self._known_good
        return super().run_job(job)

    def run_program(self, *arguments: Any, **settings: Any) -> tuple[Outcome, float | None]:
        """Give the next answer."""
        self.runs += 1
        answer = next(self._answers, None)
        return super().run_program(*arguments, **settings) if answer is None else (answer, None)


@pytest.fixture(scope="module")
def task() -> Task:
    return extract_tasks("softmax 16 32", GPU)[0]


@pytest.fixture(scope="module")
def candidates(task: Task) -> Sequence[Candidate]:
    valid = (Candidate(p, s) for p, s in DesignSpace(task).sample(0) if s is not None)
    return list(itertools.islice(valid, 3))


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (HANGS, Status.RUN_TIMEOUT, "killed after 10 s"),
        (FULL, Status.RUN_ERROR, "RuntimeError: CUDA: out of memory"),
        (LOST, Status.RUN_ERROR, "RuntimeError: CUDA: unspecified launch failure"),
    ],
)
def test_costs_one_record_and_the_run_goes_on(
    task: Task, candidates: Sequence[Candidate], answer: Outcome, status: Status, error: str
) -> None:
    with StandIn(answer) as measurer:
        first, *others = measurer.measure(task, candidates)
    assert (first.status, first.error) == (status, error)
    assert [one.status for one in others] == [Status.OK] * 2


def test_a_batch_that_fails_while_the_gpu_is_well(
    task: Task, candidates: Sequence[Candidate]
) -> None:
    with StandIn(*[FULL] * 3) as measurer:
        found = measurer.measure(task, candidates)
    assert {one.error for one in found} == {f"{FULL.error}{CONFIRMED}"}


@pytest.mark.parametrize("fault", [FULL, LOST, HANGS])
def test_a_gpu_that_runs_nothing_ends_with_one_line(
    task: Task, candidates: Sequence[Candidate], fault: Outcome
) -> None:
    with (
        StandIn(*[fault] * 3, known_good=fault) as measurer,
        pytest.raises(MeasureError, match="not even one that is known to be good") as error,
    ):
        measurer.measure(task, candidates)
    assert "\n" not in str(error.value) and str(fault.error) in str(error.value)


def test_what_is_not_worth_running_is_recorded_with_the_reason(
    task: Task, candidates: Sequence[Candidate], monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts = iter(["main_kernel spills", None, None])
    monkeypatch.setattr(measurer_module, "why_not_run", lambda *_: next(verdicts))
    with StandIn() as measurer:
        first, *others = measurer.measure(task, candidates)
        left = list(Path(measurer.server.folder).glob("*.so"))
    assert (first.status, first.error) == (Status.INVALID, "main_kernel spills")
    assert first.build_secs is not None and first.latency_s is None
    assert [one.status for one in others] == [Status.OK] * 2
    assert measurer.runs == 2 and len(left) == 0


def test_what_cannot_be_launched_is_not_even_built() -> None:
    task = extract_tasks("matmul 256 256 256", GPU)[0]
    space = DesignSpace(task)
    refused = next(p for p, s in space.sample(0) if s is None)
    with StandIn() as measurer:
        (found,) = measurer.measure(task, [Candidate(refused, None)])
    assert (found.status, found.error) == (Status.INVALID, space.refusal(refused))
    assert found.build_secs is None and "may take" in str(found.error)
