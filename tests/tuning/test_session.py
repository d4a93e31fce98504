"""What a run's folder keeps from session to session."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costlib.canary_times import CanaryTimes
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurement import Measurement
from costlib.schema import Origin, Status
from costlib.space.design_space import DesignSpace
from costlib.tuning import session as module
from costlib.tuning.database import WORKLOADS
from costlib.tuning.session import RUN, TASKS, Session, as_begun, points_for
from costlib.tuning.trials import BATCHES, Record
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


def test_points_stay_those_of_the_trials_that_a_run_began_with(
    hardware: Hardware, tmp_path: Path
) -> None:
    assert points_for(tmp_path, 8) == 8
    Session(tmp_path / "usual", ["a"], hardware, 0, has_ranges=True)
    assert points_for(tmp_path / "usual", 400) is None
    Session(tmp_path / "few", ["a"], hardware, 0, has_ranges=True, points_for=4)
    assert points_for(tmp_path / "few", 400) == points_for(tmp_path / "few", None) == 4
    (tmp_path / "few" / RUN).write_text('{"points_for_trials": -1}')
    assert points_for(tmp_path / "few", 400) == 400


@pytest.mark.parametrize("name", ["dataset.json", "bundle.json"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_dataset_or_a_bundle_is_no_place_for_a_run(
    hardware: Hardware, tmp_path: Path, name: str, resume: bool
) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match=r"holds a .*; choose another folder"):
        Session(tmp_path, ["a"], hardware, 0, resume=resume)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_nor_is_a_database_of_metaschedule(hardware: Hardware, tmp_path: Path) -> None:
    (tmp_path / WORKLOADS).write_text("[]")
    with pytest.raises(InputError, match="holds no run, but database_workload"):
        Session(tmp_path, ["a"], hardware, 0)


def test_what_is_no_run_is_not_resumed(hardware: Hardware, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="holds no run to go on with"):
            Session(folder, ["a"], hardware, 0, resume=True)
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("content", [None, b"", b"{"])
def test_a_run_goes_on_without_its_note(
    hardware: Hardware, tasks: list[Task], tmp_path: Path, content: bytes | None
) -> None:
    session = Session(tmp_path, ["a"], hardware, 0)
    session.trials.keep_reference(FIRST)
    session.trials.register(tasks[:1], [])
    program, _ = next(DesignSpace(tasks[0]).sample(0))
    measurement = Measurement(program, Status.OK, 1e-3, (1e-3,), (1e-3,), (1e-3,))
    session.trials.append(Record(tasks[0].workload_id, [measurement], [Origin.RANDOM]))
    note = (tmp_path / RUN).read_bytes()
    (tmp_path / RUN).unlink() if content is None else (tmp_path / RUN).write_bytes(content)
    with pytest.raises(InputError, match="--resume goes on"):
        Session(tmp_path, ["a"], hardware, 0)
    with pytest.raises(InputError, match=r"with seed 0, not on .* with seed 1"):
        Session(tmp_path, ["a"], hardware, 1, resume=True)
    (batch,) = (tmp_path / BATCHES).iterdir()
    batch.write_bytes(b"")
    again = Session(tmp_path, ["a"], hardware, 0, resume=True)
    assert (tmp_path / RUN).read_bytes() == note
    (record,) = again.trials.recorded()
    assert [one.program.program_id for one in record.measurements] == [program.program_id]


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


@pytest.mark.parametrize(
    ("noted", "is_cold"),
    [
        (None, True),
        ("", True),
        ("[]", True),
        ('{"cold_weights": true}', True),
        ('{"networks": []}', False),
    ],
)
def test_a_run_goes_on_with_the_caches_it_began_with(
    noted: str | None, is_cold: bool, tmp_path: Path
) -> None:
    if noted is not None:
        (tmp_path / RUN).write_text(noted)
    assert as_begun(tmp_path, MeasureConfig()).cold_weights is is_cold
    assert not as_begun(tmp_path, MeasureConfig(cold_weights=False)).cold_weights
