"""Adapting: on a device that is not there, minute by minute of a clock that it moves, and here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from costlib.cli.app import run as run_command
from costlib.collecting import collect as collect_module
from costlib.collecting import ledger, lessons
from costlib.collecting.adapt import AdaptProgress, adapt, data_of
from costlib.collecting.adapted import Adapted, adapted_of, doubt_of
from costlib.collecting.held_out import FILE, held_out_likeness
from costlib.collecting.plan import Mix
from costlib.data.dataset import Dataset
from costlib.data.drift import Steadiness
from costlib.data.splits import workload_keys
from costlib.data.verify import verify
from costlib.errors import BundleError, InputError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.hub.evaluate import evaluate
from costlib.hub.fine_tuning import fine_tuning_of
from costlib.hub.manifest import MANIFEST
from costlib.hub.remote import publish
from costlib.testing.simulated import SimulatedDevice, analytic
from costlib.workloads import Task, extract_tasks
from tools.maintenance.held_out_likeness import held_out_likeness as found_in_the_zoo

BATCH_SECS = 10.0
PROGRAMS = 8


class Clock:
    """Moves on when a batch is measured, and not while models are taught."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@cache
def small_tasks() -> list[Task]:
    shapes = [(n, k) for n in (8, 16, 24, 32, 40) for k in (16, 32, 48, 64)]
    return [extract_tasks(f"matmul 16 {n} {k}", Hardware.local())[0] for n, k in shapes]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(count: int, hardware: Hardware, banned: object, seed: int) -> Iterator[Task]:
        tasks = small_tasks()
        start = seed % len(tasks)
        yield from (tasks[start:] + tasks[:start])[:count]

    monkeypatch.setattr(lessons, "invented_tasks", drawn)
    monkeypatch.setattr(lessons, "PROGRAMS", PROGRAMS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(ledger, "monotonic", clock)
    return clock


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> list[SimulatedDevice]:
    """The devices that were measured on."""
    devices: list[SimulatedDevice] = []

    class Simulated(SimulatedDevice):
        def __init__(self, *_: object) -> None:
            super().__init__(analytic)
            devices.append(self)

        def __enter__(self) -> Simulated:
            return self

        def __exit__(self, *_: object) -> None:
            self._builder.shutdown()

        def measure(self, *arguments: Any) -> Any:
            clock.now_s += BATCH_SECS
            return super().measure(*arguments)

    monkeypatch.setattr(collect_module, "measurer_for", Simulated)
    return devices


@pytest.fixture
def at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that take no search, which takes most of the time."""
    for name in ("_TEACHING", "_JUDGING"):
        monkeypatch.setattr(lessons, name, Mix(mutated=0))


def measured(out: Path) -> pl.DataFrame:
    return Dataset.open(data_of(out)).scan().collect()


def adapted(bundle: Bundle) -> Adapted:
    found = adapted_of(bundle)
    assert found is not None
    return found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "mine"


def test_a_machine_is_learnt(
    out: Path, bundle: Bundle, hardware: Hardware, simulated: list[SimulatedDevice]
) -> None:
    seen: list[AdaptProgress] = []
    tuned = adapt(out, minutes=2.5, bundle=bundle, hardware=hardware, on_progress=seen.append)
    rows, found, tuning = measured(out), adapted(tuned), fine_tuning_of(tuned)
    assert tuning is not None
    assert len(rows) == sum(len(device.measured) for device in simulated) == found.programs
    assert rows["program_id"].is_unique().all()
    assert rows.group_by("workload_id").len()["len"].max() == PROGRAMS
    assert found.tasks == rows["workload_id"].n_unique() == tuning.tasks + found.apart
    assert found.apart == len(tuned.manifest.trained_on.held_out) >= 2
    assert not set(tuned.manifest.trained_on.held_out) & set(tuned.manifest.trained_on.trained)
    assert {"random", "evolved"} <= set(rows["origin"])
    for one in (tuning.model, tuning.draft):
        assert one is not None
        assert one.after.pairwise_accuracy >= one.before.pairwise_accuracy
    first, *_, last = found.curve
    assert (first.minutes, first.model, last.model) == (0, tuning.model.before, tuning.model.after)
    assert len(found.curve) == 4
    counts = [point.programs for point in found.curve]
    assert counts == sorted(counts) and counts[-1] == tuning.programs
    assert {point.model.tasks for point in found.curve} == {found.apart}
    assert found.machine is not None and found.machine.doubtful == 0
    assert seen[-1].programs == len(rows)
    assert {one.total_s for one in seen} == {150.0}
    assert [one.spent_s for one in seen] == sorted(one.spent_s for one in seen)
    assert "costlib adapt --minutes 2.5" in tuned.manifest.command
    assert Bundle.load(publish(tuned, str(out.parent / "shelf"))).manifest == tuned.manifest
    judged = evaluate(tuned, Dataset.open(data_of(out)))
    assert judged.tasks == found.apart
    assert judged.top1 == pytest.approx(tuning.model.after.top1)
    card = (tuned.path / "README.md").read_text()
    assert "Quality by minutes" in card and f"| {found.minutes:.1f} |" in card


@pytest.mark.usefixtures("at_random")
def test_it_goes_on_where_it_was_stopped(
    out: Path, bundle: Bundle, hardware: Hardware, simulated: list[SimulatedDevice], clock: Clock
) -> None:
    def stop(progress: AdaptProgress) -> None:
        if progress.programs >= 2 * PROGRAMS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        adapt(out, minutes=2, bundle=bundle, hardware=hardware, on_progress=stop)
    assert len(measured(out)) == 2 * PROGRAMS
    assert not out.exists()
    clock.now_s += 3600  # Nobody is at work meanwhile.
    tuned = adapt(out, minutes=2, bundle=bundle, hardware=hardware)
    assert measured(out)["program_id"].is_unique().all()
    assert 1.5 < adapted(tuned).minutes < 2.5
    batches = len(simulated)

    again = adapt(out, minutes=2, bundle=bundle, hardware=hardware)
    assert again.manifest == tuned.manifest
    assert len(simulated) == batches, "the minutes are spent"

    more = adapt(out, minutes=3, bundle=bundle, hardware=hardware)
    assert adapted(more).programs > adapted(tuned).programs
    earlier = {(point.minutes, point.programs) for point in adapted(tuned).curve}
    assert earlier <= {(point.minutes, point.programs) for point in adapted(more).curve}


@pytest.mark.usefixtures("at_random")
def test_too_little_time_loses_nothing(
    out: Path, bundle: Bundle, hardware: Hardware, simulated: list[SimulatedDevice]
) -> None:
    with pytest.raises(InputError, match="too few to compare anything; the 8 programs measured"):
        adapt(out, minutes=0.1, bundle=bundle, hardware=hardware)
    assert not out.exists()
    assert len(measured(out)) == PROGRAMS
    tuned = adapt(out, minutes=1, bundle=bundle, hardware=hardware)
    assert adapted(tuned).programs > PROGRAMS
    assert "only 2 tasks could be judged on" in adapted(tuned).doubt


@pytest.mark.usefixtures("at_random")
def test_what_is_refused(
    out: Path,
    bundle: Bundle,
    bundle_copy: Path,
    hardware: Hardware,
    simulated: list[SimulatedDevice],
) -> None:
    with pytest.raises(InputError, match="must be more than 0"):
        adapt(out, minutes=0, bundle=bundle)
    with pytest.raises(BundleError, match="was not adapted here"):
        adapt(bundle_copy, bundle=bundle, hardware=hardware)
    other = shutil.copytree(bundle_copy, bundle_copy.with_name("other"))
    manifest = other / MANIFEST
    manifest.write_text(manifest.read_text().replace('"nests-', '"other-'))
    with pytest.raises(BundleError, match="was trained on features 'other-"):
        adapt(out, bundle=other, hardware=hardware)
    assert sorted(one.name for one in out.parent.iterdir()) == ["copy", "other"]
    adapt(out, minutes=1, bundle=bundle, hardware=hardware)
    with pytest.raises(InputError, match="holds an adaptation with the seed 0, not 1"):
        adapt(out, minutes=1, bundle=bundle, hardware=hardware, seed=1)
    state = out.with_name(".mine-adapting") / "adaptation.json"
    state.write_text("{")
    with pytest.raises(InputError, match=r"cannot be read .*what was measured stays"):
        adapt(out, minutes=1, bundle=bundle, hardware=hardware)


@pytest.mark.usefixtures("at_random")
def test_real_programs_by_the_command(
    out: Path,
    bundle: Bundle,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = collect_module.Measurer.measure

    def measure(self: Any, *arguments: Any) -> Any:
        clock.now_s += BATCH_SECS
        return real(self, *arguments)

    monkeypatch.setattr(collect_module.Measurer, "measure", measure)
    monkeypatch.setattr(lessons, "PROGRAMS", 6)
    command = ["costlib", "adapt", "--minutes", "1", "--pretrained", str(bundle.path)]
    monkeypatch.setattr("sys.argv", [*command, "--out", str(out), "--json"])
    assert run_command() == 0
    values = json.loads(capsys.readouterr().out)
    assert values["after"]["top1"] >= values["before"]["top1"]
    assert (values["programs"], values["data"]) == (len(measured(out)), str(data_of(out)))
    assert values["tasks"] == measured(out)["workload_id"].n_unique()
    assert values["curve"][0]["minutes"] == 0
    assert set(values["kept"]) == {"model", "draft"}
    assert [p for p in verify(Dataset.open(data_of(out))) if "canary" not in p.what] == []
    monkeypatch.setattr("sys.argv", [*command, "--out", str(out)])
    assert run_command() == 0
    assert "quality by minutes, on 2 tasks kept apart" in capsys.readouterr().out


@pytest.mark.usefixtures("at_random")
def test_no_task_of_a_held_out_network_is_drawn(
    out: Path,
    bundle: Bundle,
    hardware: Hardware,
    simulated: list[SimulatedDevice],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert FILE.read_text() == found_in_the_zoo()
    (first, *_) = keys = [task.workload_id for task in small_tasks()]
    dataset = Dataset.create(out.with_name("known"))
    from costlib.data.task_tables import register_workloads

    register_workloads(dataset, small_tasks(), keys)
    (banned,) = (k for k in workload_keys(dataset.scan("workloads")) if k.workload_id == first)
    alike: Callable[[], frozenset[str]] = lambda: frozenset({banned.likeness})  # noqa: E731
    monkeypatch.setattr(lessons, "held_out_likeness", alike)
    adapt(out, minutes=1, bundle=bundle, hardware=hardware)
    assert first not in set(measured(out)["workload_id"])
    assert len(held_out_likeness()) > 50


def test_no_task_at_all(
    out: Path, bundle: Bundle, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lessons, "invented_tasks", lambda *_: iter(()))
    with pytest.raises(InputError, match="no tasks can be made for"):
        adapt(out, minutes=1, bundle=bundle, hardware=hardware)


def test_an_unsteady_machine_is_named() -> None:
    steady, unsteady = (
        Steadiness(measurements=100, doubtful=doubtful, slow_down=1.5) for doubtful in (0.1, 0.4)
    )
    assert doubt_of(20, steady) == doubt_of(20, None) == ""
    assert "in 40 % of the measurements (the worst tenth: 1.50 times slower)" in doubt_of(
        20, unsteady
    )
    assert "only 2 tasks could" in doubt_of(2, steady)
