"""What a run's folder keeps from session to session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.measurement import Measurement
from costlib.schema import CanaryTimes, Origin, Status
from costlib.space.design_space import DesignSpace
from costlib.tuning import session as module
from costlib.tuning.session import TASKS, Session
from costlib.tuning.trials import Record
from costlib.workloads import Task, extract_tasks

FIRST = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
LATER = CanaryTimes(compute_s=2e-3, memory_s=2e-3)


@pytest.fixture(scope="module")
def tasks(hardware: Hardware) -> list[Task]:
    sources = ("matmul 64 64 64", "softmax 64 64")
    return [extract_tasks(source, hardware)[0] for source in sources]


class Clock:
    """Times tasks, and says in which state of the machine it was asked to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *latencies_s: float | None) -> None:
        self.asked: list[tuple[str, CanaryTimes]] = []
        self._latencies_s = latencies_s
        monkeypatch.setattr(module, "untuned_latencies", self)

    def __call__(self, tasks: Sequence[Task], measurer: Any) -> list[float | None]:
        self.asked += [(task.name, measurer.reference) for task in tasks]
        return list(self._latencies_s[: len(tasks)])


def device(reference: CanaryTimes) -> Any:
    return SimpleNamespace(reference=reference)


def test_a_folder_is_of_one_run(hardware: Hardware, tmp_path: Path) -> None:
    Session(tmp_path, ["a"], hardware, 0)
    with pytest.raises(InputError, match="--resume goes on"):
        Session(tmp_path, ["a"], hardware, 0)
    with pytest.raises(InputError, match="choose another folder"):
        Session(tmp_path, ["b"], hardware, 0, resume=True)
    Session(tmp_path, ["a"], hardware, 0, resume=True)


def test_tasks_are_timed_in_the_state_of_the_machine_that_the_run_began_in(
    hardware: Hardware, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, 1.0, 2.0)
    Session(tmp_path, ["a"], hardware, 0).baseline(tasks[:1], device(FIRST), 100)
    measurer = device(LATER)
    again = Session(tmp_path, ["a"], hardware, 0, resume=True)
    assert again.trials.reference() == FIRST
    again.baseline(tasks, measurer, 100)
    assert measurer.reference == FIRST
    assert clock.asked == [("matmul", FIRST), ("softmax", FIRST)]


def test_a_task_that_was_chosen_stays_so_whatever_the_clock_says_now(
    hardware: Hardware, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch, 1.0, 1e-3)
    first = Session(tmp_path, ["a"], hardware, 0).baseline(tasks, device(FIRST), 1_000)
    assert first.chosen == tuple(task.workload_id for task in tasks)
    clock = Clock(monkeypatch, 1.0, 1e-9)
    again = Session(tmp_path, ["a"], hardware, 0, resume=True)
    assert again.baseline(tasks, device(FIRST), 2) == first
    assert clock.asked == []


def test_a_larger_budget_adds_tasks(
    hardware: Hardware, tasks: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Clock(monkeypatch, 1.0, 1e-7)
    few = Session(tmp_path, ["a"], hardware, 0).baseline(tasks, device(FIRST), 2)
    assert few.chosen == (tasks[0].workload_id,)
    again = Session(tmp_path, ["a"], hardware, 0, resume=True)
    many = again.baseline(tasks, device(FIRST), 100_000)
    assert many.chosen == tuple(task.workload_id for task in tasks)
    assert many.untuned_s == few.untuned_s


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"untuned_s": 3}'])
def test_a_run_of_an_older_costlib_or_with_a_damaged_note_goes_on(
    hardware: Hardware,
    tasks: list[Task],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: bytes | None,
) -> None:
    Clock(monkeypatch, 1.0, 1e-9)
    session = Session(tmp_path, ["a"], hardware, 0)
    session.trials.keep_reference(FIRST)
    space = DesignSpace(tasks[1])
    session.trials.register([tasks[1]], space.sketches)
    program, _ = next(space.sample(0))
    measurement = Measurement(program, Status.OK, 1e-3, (1e-3,), (1e-3,), (1e-3,))
    session.trials.append(Record(tasks[1].workload_id, [measurement], [Origin.RANDOM]))
    if content is not None:
        (tmp_path / TASKS).write_bytes(content)
    again = Session(tmp_path, ["a"], hardware, 0, resume=True)
    baseline = again.baseline(tasks, device(LATER), 2)
    assert tasks[1].workload_id in baseline.chosen, "what was measured of it is not dropped"
    noted = json.loads((tmp_path / TASKS).read_text())
    assert noted["chosen"] == list(baseline.chosen)
