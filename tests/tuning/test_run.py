"""The search's logic, on a simulated device: exact and fast."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.building import Building
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.search.config import SearchConfig
from costlib.search.evolution.search import EvolutionarySearch, EvolutionConfig
from costlib.search.evolution.second_stage import Draft, SecondStage
from costlib.search.random_search import RandomConfig
from costlib.search.run_model import RunModel, RunModelConfig
from costlib.search.strategy import Proposal
from costlib.search.tasks.planning import PlanningConfig
from costlib.search.tasks.relatives import RelativesConfig
from costlib.search.tasks.scheduler import OBJECTIVES, Objective, TaskScheduler
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.testing.simulated import SimulatedDevice, analytic
from costlib.tuning import run as run_module
from costlib.tuning.run import Batch, TuningRun
from costlib.tuning.trials import BATCHES, Trials
from costlib.tvm_compat.api import structural_key
from costlib.workloads import Task, extract_tasks

EVOLUTION = EvolutionConfig(
    population=64, generations=3, survivors=2, early_survivors=2, looks=1, crossover=0.2
)
SMALL = SearchConfig(strategy=EVOLUTION, models=RunModelConfig(directions=True))
PLAIN = SearchConfig(
    strategy=EVOLUTION.model_copy(update={"sketch_selection": False, "crossover": 0.0}),
    models=RunModelConfig(draft=False, correction=False),
    relatives=RelativesConfig(diffusion=False, bank=False),
)


def evolving(**changes: Any) -> SearchConfig:
    """The small search with other settings of the evolution."""
    return SMALL.model_copy(update={"strategy": EVOLUTION.model_copy(update=changes)})


def planning(**changes: Any) -> SearchConfig:
    return SMALL.model_copy(update={"planning": PlanningConfig(**changes)})


@pytest.fixture(scope="module")
def tasks(hardware: Hardware) -> list[Task]:
    sources = ("matmul 64 64 64", "matmul 128 64 64", "softmax 64 64")
    return [extract_tasks(source, hardware)[0] for source in sources]


def start(
    tasks: Sequence[Task],
    hardware: Hardware,
    folder: Path,
    device: SimulatedDevice | None = None,
    bundle: Bundle | None = None,
    config: SearchConfig = SMALL,
    seed: int = 0,
    scheduler: TaskScheduler | None = None,
) -> TuningRun:
    return TuningRun(
        tasks,
        scheduler or TaskScheduler(np.ones((1, len(tasks)))),
        hardware,
        device or SimulatedDevice(analytic),
        Trials(folder, hardware, seed),
        bundle=bundle,
        config=config,
        seed=seed,
    )


def test_finds_much_better_programs_than_random_ones(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    run = start(tasks[:1], hardware, tmp_path)
    batches: list[Batch] = []
    assert run.run(48, on_batch=batches.append) == "all trials were spent"
    latencies = [m.latency_s for batch in batches for m in batch.measurements]
    assert None not in latencies
    first, best = min(latencies[:8]), min(latencies)  # type: ignore[type-var]
    assert best == run.searches[0].best_s
    assert best < 0.6 * first  # type: ignore[operator]
    assert len({m.program.program_id for b in batches for m in b.measurements}) == 48


def test_every_task_gets_its_turn(tasks: list[Task], hardware: Hardware, tmp_path: Path) -> None:
    run = start(tasks, hardware, tmp_path)
    run.run(24)
    assert run.measured == 24
    assert all(len(search.history) >= PlanningConfig().batch for search in run.searches)


@pytest.mark.parametrize("config", [SMALL, PLAIN], ids=["full", "plain"])
def test_the_same_seed_proposes_the_same(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, bundle: Bundle, config: SearchConfig
) -> None:
    orders = []
    for name in ("one", "two"):
        device = SimulatedDevice(analytic)
        start(tasks, hardware, tmp_path / name, device, bundle, config).run(20)
        orders.append([m.program.program_id for m in device.measured])
    assert orders[0] == orders[1]
    other = SimulatedDevice(analytic)
    start(tasks, hardware, tmp_path / "three", other, bundle, config, seed=1).run(20)
    assert [m.program.program_id for m in other.measured] != orders[0]


def test_a_run_goes_on_where_it_stopped(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    first = SimulatedDevice(analytic)
    start(tasks, hardware, tmp_path, first).run(16)
    second = SimulatedDevice(analytic)
    batches: list[Batch] = []
    run = start(tasks, hardware, tmp_path, second)
    run.run(24, on_batch=batches.append)
    assert run.measured == 24
    assert len(second.measured) == 8
    told = [one.program.program_id for batch in batches for one in batch.measurements]
    done = [one.program.program_id for one in [*first.measured, *second.measured]]
    assert told == done and len(set(done)) == 24
    for search in run.searches:
        known = [*first.measured, *second.measured]
        own = [m.latency_s for m in known if m.program.workload_id == search.task.workload_id]
        assert search.best_s == min(own)  # type: ignore[type-var]


class KilledError(Exception):
    """In the place of ``kill -9``."""


class Mortal(SimulatedDevice):
    """Dies while it measures, after so many programs."""

    def __init__(self, programs: int, slow_down: float) -> None:
        super().__init__(self._run, slow_down)
        self._left = programs

    def _run(self, task: Task, program: Program) -> float | None:
        if not self._left:
            raise KilledError
        self._left -= 1
        return analytic(task, program)


def scheduler_for(objective: Objective) -> TaskScheduler:
    """Two networks that share a task; one of them comes to be as fast as required."""
    weights = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]])
    settings = {
        "requirement": {"required_s": [1e-3, 1e-9]},
        "speedup": {"reference_s": [1e-3, 1e-4]},
    }
    return TaskScheduler(weights, objective, **settings.get(objective, {}))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_run_killed_twice_and_resumed_is_the_run_that_was_not(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, bundle: Bundle, objective: Objective
) -> None:
    config = evolving(looks=3)

    def begin(folder: str, device: SimulatedDevice) -> tuple[TuningRun, TaskScheduler]:
        scheduler, place = scheduler_for(objective), tmp_path / folder
        return start(tasks, hardware, place, device, bundle, config, 0, scheduler), scheduler

    def kill_after(trials: int) -> Callable[[Batch], None]:
        measured = itertools.count(1)

        def told(batch: Batch) -> None:
            if [next(measured) for _ in batch.measurements][-1] >= trials:
                raise KilledError

        return told

    whole, expected = begin("whole", SimulatedDevice(analytic, 1.2))
    reason = whole.run(36)
    killed, _ = begin("killed", SimulatedDevice(analytic, 1.2))
    with pytest.raises(KilledError):
        killed.run(36, on_batch=kill_after(12))
    again, _ = begin("killed", Mortal(8, 1.2))
    with pytest.raises(KilledError):
        again.run(36)
    resumed, scheduler = begin("killed", SimulatedDevice(analytic, 1.2))
    assert resumed.run(36) == reason
    assert scheduler._history == expected._history
    assert resumed.measured == whole.measured

    def records(folder: str) -> list[tuple[list[str], list[Origin], list[str]]]:
        return [
            ([m.program.program_id for m in r.measurements], list(r.origins), list(r.refused))
            for r in Trials(tmp_path / folder, hardware).recorded()
        ]

    assert records("killed") == records("whole")
    for one, other in zip(resumed.searches, whole.searches, strict=True):
        assert one.history.best_after_s == other.history.best_after_s
        assert one.history.origins == other.history.origins


def test_a_kill_between_measurements_and_their_note_loses_nothing(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    start(tasks, hardware, tmp_path).run(12)
    for note in sorted((tmp_path / BATCHES).iterdir())[2:]:
        note.unlink()
    device = SimulatedDevice(analytic)
    run = start(tasks, hardware, tmp_path, device)
    run.run(16)
    assert run.measured == 16
    assert len(device.measured) == 4


def test_seconds_of_earlier_sessions_count(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    first: list[Batch] = []
    start(tasks, hardware, tmp_path).run(8, on_batch=first.append)
    both: list[Batch] = []
    start(tasks, hardware, tmp_path).run(16, on_batch=both.append)
    elapsed = [batch.elapsed_s for batch in both]
    assert elapsed[: len(first)] == [batch.elapsed_s for batch in first]
    assert elapsed == sorted(elapsed) and elapsed[-1] > elapsed[len(first) - 1]


def test_early_stop_comes_to_an_end(tasks: list[Task], hardware: Hardware, tmp_path: Path) -> None:
    scheduler = TaskScheduler(np.ones((1, 2)), "early-stop")
    run = start(tasks[1:], hardware, tmp_path, scheduler=scheduler)
    assert run.run(5_000) == "nothing more is to be gained"
    assert 2 * 7 * PlanningConfig().batch <= run.measured < 5_000


def test_networks_that_are_as_fast_as_required_get_no_trials(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    scheduler = TaskScheduler(np.ones((1, 3)), "requirement", required_s=[1.0])
    run = start(tasks, hardware, tmp_path, scheduler=scheduler)
    assert run.run(5_000) == "nothing more is to be gained"
    assert 3 * PlanningConfig().batch <= run.measured <= 4 * PlanningConfig().batch


LUCK = 1_000_000


class LuckyOnce:
    """Latencies of which the fifth is far too good, whatever there is to find."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, task: Task, program: Program) -> float | None:
        true_s = analytic(task, program)
        assert true_s is not None
        self.seen[program.program_id] += 1
        return true_s / LUCK if self.seen.total() == 5 else true_s


def test_a_lucky_measurement_is_found_out(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    once, again = (LUCK, {0}), (1, set(range(2, 7)))
    for looks, slow_down, (luck, repeats) in ((1, 1.2, once), (3, 1.2, again), (3, 1.0, once)):
        latency = LuckyOnce()
        device = SimulatedDevice(latency, slow_down)
        folder = tmp_path / f"{looks}-{slow_down}"
        run = start(tasks[:1], hardware, folder, device, config=evolving(looks=looks))
        run.run(32)
        assert latency.seen.total() == run.measured == 32
        best_s, best = run.searches[0].elite[0]
        assert analytic(tasks[0], best) == pytest.approx(luck * best_s)
        origins = run.searches[0].history.origins
        assert origins[Origin.REPEATED] == sum(count - 1 for count in latency.seen.values())
        assert origins[Origin.REPEATED] in repeats
        assert max(latency.seen.values()) in ({2, 3} if max(repeats) else {1})


def test_the_best_programs_are_checked_beyond_the_trials(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "_MOST_CHECKS", 4)
    latency = LuckyOnce()
    device = SimulatedDevice(latency, slow_down=1.2)
    run = start(tasks[:1], hardware, tmp_path, device, config=evolving(looks=3))
    run.run(5)
    best_s, best = run.searches[0].elite[0]
    assert analytic(tasks[0], best) == pytest.approx(LUCK * best_s)
    told: list[Batch] = []
    run.check_best(on_batch=told.append)
    best_s, best = run.searches[0].elite[0]
    assert analytic(tasks[0], best) == pytest.approx(best_s)
    assert run.measured == 5
    checks = run.searches[0].history.origins[Origin.CHECKED]
    assert checks == len(told) == latency.seen.total() - 5 > 0
    resumed = start(tasks[:1], hardware, tmp_path, device, config=evolving(looks=3))
    resumed.run(5)
    assert resumed.searches[0].elite[0] == run.searches[0].elite[0]
    assert resumed.measured == 5
    before = latency.seen.total()
    resumed.check_best()
    assert latency.seen.total() == before
    run.check_best(interrupted=lambda: True)


def test_the_last_trials_go_to_what_was_measured_once(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    config = evolving(looks=2)
    device = SimulatedDevice(analytic, slow_down=1.2)
    run = start(tasks[:2], hardware, tmp_path, device, config=config)
    run.run(24)
    looks = Counter(m.program.program_id for m in device.measured)
    assert looks.total() == run.measured == 24
    assert [looks[s.elite[0][1].program_id] for s in run.searches] == [2, 2]
    resumed = start(tasks[:2], hardware, tmp_path, device, config=config)
    resumed.run(24)
    assert [s.elite[0] for s in resumed.searches] == [s.elite[0] for s in run.searches]
    assert not any(search.is_unsure for search in resumed.searches)


def test_programs_that_fail_are_not_proposed_again(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    def fails(task: Task, program: Program) -> float | None:
        return None if int(program.program_id[:2], 16) % 2 else analytic(task, program)

    device = SimulatedDevice(fails)
    run = start(tasks[:1], hardware, tmp_path, device)
    run.run(32)
    assert len({m.program.program_id for m in device.measured}) == 32
    assert any(m.latency_s is None for m in device.measured)
    assert run.searches[0].best_s is not None


class Recorder(SimulatedDevice):
    """Keeps in mind which code it was given."""

    def __init__(self) -> None:
        super().__init__(analytic)
        self.code: list[int] = []

    def begin(self, task: Task, candidates: Sequence[Candidate]) -> Building[None]:
        for candidate in candidates:
            assert candidate.schedule is not None
            self.code.append(structural_key(candidate.schedule.mod))
        return super().begin(task, candidates)


def test_a_small_space_is_measured_to_its_end(hardware: Hardware, tmp_path: Path) -> None:
    task = extract_tasks("transpose 8 8", hardware)[0]
    device = Recorder()
    run = start([task], hardware, tmp_path, device)
    assert run.run(10_000) == "every program of every task was measured"
    assert run.measured == len(run.searches[0].history.measured) < 10_000
    drawn = itertools.islice(DesignSpace(task).sample(0), 500)
    there_is = {structural_key(schedule.mod) for _, schedule in drawn if schedule is not None}
    assert set(device.code) == there_is


def test_programs_of_the_same_code_are_measured_once(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    device = Recorder()
    start(tasks[:1], hardware, tmp_path, device).run(16)
    start(tasks[:1], hardware, tmp_path, device).run(40)
    assert len(device.code) == len(set(device.code)) == 40


def test_a_share_goes_to_niches_that_were_measured_least(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    kinds = []
    for share in (0.0, 1.0):
        config = evolving(niches=share, sketch_selection=False)
        run = start(tasks[:1], hardware, tmp_path / str(share), config=config)
        run.run(64)
        visits = run.searches[0]._visits  # type: ignore[attr-defined]
        assert visits.total() == 64
        kinds.append(len(visits))
    assert kinds[1] > 1.3 * kinds[0]


def test_more_candidates_are_lowered_for_the_first_programs(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[int] = []
    survivors = SecondStage.survivors

    def counted(self: SecondStage, drafts: Iterator[Draft], wanted: int) -> list[Proposal]:
        asked_for.append(wanted)
        return survivors(self, drafts, wanted)

    monkeypatch.setattr(SecondStage, "survivors", counted)
    config = evolving(early_survivors=3, niches=0.0)
    config = config.model_copy(update={"planning": PlanningConfig(batch=8)})
    start(tasks[:1], hardware, tmp_path, config=config).run(48)
    assert asked_for[:5] == [24, 24, 24, 24, 16]


def test_batches_grow_with_what_was_measured(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    sizes = {}
    for growth, trials in ((0.25, 96), (0.0, 24)):
        batches: list[Batch] = []
        config = PLAIN.model_copy(
            update={"strategy": RandomConfig(), "planning": PlanningConfig(growth=growth)}
        )
        run = start(tasks[:1], hardware, tmp_path / str(growth), config=config)
        run.run(trials, on_batch=batches.append)
        sizes[growth] = [len(batch.measurements) for batch in batches]
        assert sum(sizes[growth]) == trials
    assert sizes[0.25][:6] == [4, 4, 4, 4, 4, 5]
    assert max(sizes[0.25]) == 16
    assert set(sizes[0.0]) <= {4, 3, 1}


class Diary(SimulatedDevice):
    """Writes down when a search is asked for programs, and when programs are run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(self._run)
        self.entries: list[tuple[str, Task]] = []
        propose = EvolutionarySearch.propose

        def noted(search: EvolutionarySearch, *arguments: Any) -> list[Proposal]:
            self.entries.append(("propose", search.task))
            return propose(search, *arguments)

        monkeypatch.setattr(EvolutionarySearch, "propose", noted)

    def _run(self, task: Task, program: Program) -> float | None:
        if self.entries[-1] != ("run", task):
            self.entries.append(("run", task))
        return analytic(task, program)

    def in_turns(self) -> int:
        """After how many entries a batch is proposed before the one before it was run."""
        kinds = [kind for kind, _ in self.entries]
        return next((i for i in range(1, len(kinds)) if kinds[i - 1] == kinds[i]), len(kinds))


def test_a_settled_task_is_searched_while_it_is_built(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = Diary(monkeypatch)
    run = start(tasks[:1], hardware, tmp_path, diary)
    run.run(40)
    assert diary.in_turns() == 2 * 16 // PlanningConfig().batch - 1
    assert run.measured == len({m.program.program_id for m in diary.measured}) == 40


def test_another_task_is_searched_meanwhile_unless_it_waits_for_help(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, like_it, other = tasks
    for name, some, entries in (
        ("strangers", [one, other], [("propose", one), ("propose", other), ("run", one)]),
        ("alike", [one, like_it], [("propose", one), ("run", one), ("propose", like_it)]),
    ):
        diary = Diary(monkeypatch)
        start(some, hardware, tmp_path / name, diary).run(16)
        assert diary.entries[:3] == entries


def test_nothing_is_proposed_ahead_if_it_is_not_wanted(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = Diary(monkeypatch)
    config = planning(ahead=False)
    start([tasks[0], tasks[2]], hardware, tmp_path, diary, config=config).run(32)
    assert diary.in_turns() == len(diary.entries)


def test_stops_when_little_is_to_be_gained(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    run = start(tasks[:1], hardware, tmp_path)
    reason = run.run(400, min_gain=0.1)
    assert "expected to gain" in reason
    assert 8 < run.measured < 400


def test_look_alikes_start_from_one_another(
    tasks: list[Task], hardware: Hardware, tmp_path: Path
) -> None:
    shares = []
    for diffusion in (True, False):
        config = SMALL.model_copy(update={"relatives": RelativesConfig(diffusion=diffusion)})
        run = start(tasks[:2], hardware, tmp_path / str(diffusion), config=config)
        run.run(32)
        shares.append(sum(s.history.origins[Origin.DIFFUSED] for s in run.searches))
    assert shares[0] > 0
    assert shares[1] == 0


def test_without_a_bundle_a_model_guides_evolution_once_it_has_seen_enough(
    tasks: list[Task], hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tasks[:1], hardware, tmp_path, config=planning(batch=8))
    (search,) = run.searches
    asked: list[int] = []
    score = RunModel.draft_scores

    def noted(model: RunModel, *arguments: Any) -> Any:
        asked.append(len(search.history.measured))
        return score(model, *arguments)

    monkeypatch.setattr(RunModel, "draft_scores", noted)
    run.run(48)
    assert asked and min(asked) >= 32
