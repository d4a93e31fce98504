"""Stock MetaSchedule and costlib on one machine, in turns: whoever has measured less goes on.

Both measure with the same builder, runner, repeats and canaries. Stock's search runs as it is, in a
thread that waits for its turn in a measure callback; a turn is everything that leads to a batch:
learning from the last one, searching, building, running.

The best of many measurements is often a lucky one. So every program that was the best of its side
for a while is measured again in the end, all of them in turns, several times.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from costlib.measure.measurer import Measurer
from costlib.schema import Origin
from costlib.search.history import TaskHistory
from costlib.space.program import Program
from costlib.tvm_compat.api import entry_argument_shapes

PASSES = 4
"""How often the best programs are measured again."""

_Look = Callable[[], tuple[float, float] | None]
"""Measures one: the seconds of its fastest repeat, and its latency in seconds."""


class Turns:
    """Lets threads take turns; one that leaves no longer has any."""

    def __init__(self, names: Sequence[str]) -> None:
        self._done = dict.fromkeys(names, 0)
        self._turn: str | None = next(iter(names), None)
        self._changed = threading.Condition()

    def wait(self, name: str) -> None:
        """Wait until it is one's turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._turn == name)

    def pass_on(self, name: str, trials: int | None) -> None:
        """End one's turn with so many trials done in all, ``None`` to leave for good."""
        with self._changed:
            if trials is None:
                del self._done[name]
            else:
                self._done[name] = trials
            self._turn = min(self._done, key=lambda n: self._done[n], default=None)
            self._changed.notify_all()


class Elsewhere(Protocol):
    """A process that builds and runs a side's programs by itself."""

    def look_again(self, trial: int) -> Sequence[float]:
        """Return the seconds that each repeat of a program takes that was the best for a while."""
        ...

    def close(self) -> None:
        """End it."""
        ...


@dataclass
class Arm:
    """One side: every trial with the seconds that the side had spent when it was done.

    Attributes
    ----------
    trials
        (index of the task, latency in seconds or ``None``, active seconds) of each.
    measure_s
        Seconds of building and running among the active ones.
    leaders
        (index among the trials, module) of the programs that were the best of their task from
        there on.
    again
        (index among the trials, latency in seconds) of these, measured again after the race.
    settings
        What its search is told that differs from the defaults.
    elsewhere
        Where its programs are, if not here; then its leaders have no modules.
    """

    name: str
    run: Callable[[Arm, Turns], None]
    settings: dict[str, Any] = field(default_factory=dict)
    elsewhere: Elsewhere | None = None
    trials: list[tuple[int, float | None, float]] = field(default_factory=list)
    active_s: float = 0.0
    measure_s: float = 0.0
    leaders: list[tuple[int, Any]] = field(default_factory=list)
    again: list[tuple[int, float]] = field(default_factory=list)
    error: BaseException | None = None
    _since: float = 0.0
    _histories: dict[int, TaskHistory] = field(default_factory=lambda: defaultdict(TaskHistory))
    _mods: dict[str, Any] = field(default_factory=dict)

    def begin(self, turns: Turns) -> None:
        """Wait for a turn."""
        turns.wait(self.name)
        self._since = time.perf_counter()

    def note(
        self,
        task: int,
        latencies: Sequence[float | None],
        schedules: Sequence[Any],
        programs: Sequence[Program] | None = None,
    ) -> None:
        """Note a batch; its turn goes on. Without programs none is measured twice."""
        elapsed = self.active_s + time.perf_counter() - self._since
        history = self._histories[task]
        first = len(self.trials)
        programs = programs or [_unnamed(first + number) for number in range(len(latencies))]
        for program, latency_s, schedule in zip(programs, latencies, schedules, strict=True):
            self._mods[program.program_id] = schedule.mod
            leader = history.best
            history.add(program, latency_s, Origin.EVOLVED)
            if history.best is not None and history.best != leader:
                self.leaders.append((len(self.trials), self._mods[history.best]))
            self.trials.append((task, latency_s, elapsed))

    def end(self, turns: Turns) -> None:
        """Pass the turn on."""
        self.active_s += time.perf_counter() - self._since
        turns.pass_on(self.name, len(self.trials))


def race(arms: Sequence[Arm], measurer: Measurer) -> None:
    """Run arms in turns until all are done; an error in one ends the race."""
    turns = Turns([arm.name for arm in arms])

    def run(arm: Arm) -> None:
        arm.begin(turns)
        try:
            arm.run(arm, turns)
        except BaseException as error:
            arm.error = error
        turns.pass_on(arm.name, None)

    threads = [threading.Thread(target=run, args=(arm,), daemon=True) for arm in arms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        for arm in arms:
            if arm.error is not None:
                raise arm.error
        _measure_again(arms, measurer)
    finally:
        for arm in arms:
            if arm.elsewhere is not None:
                arm.elsewhere.close()


def _measure_again(arms: Sequence[Arm], measurer: Measurer) -> None:
    """Measure the leaders again, in turns; of each what it took when it took least."""
    here = [arm for arm in arms if arm.elsewhere is None]
    leaders = [(arm, trial, mod) for arm in here for trial, mod in arm.leaders]
    paths = [measurer.server.folder / f"again-{number}.so" for number in range(len(leaders))]
    jobs = [measurer.build_job(mod, path) for (_, _, mod), path in zip(leaders, paths, strict=True)]
    looks: list[tuple[Arm, int, _Look]] = [
        (arm, trial, partial(_there, arm.elsewhere, trial))
        for arm in arms
        for trial, _ in arm.leaders
        if arm.elsewhere is not None
    ]
    built = zip(leaders, paths, measurer.server.work(jobs), strict=True)
    for (arm, trial, mod), path, outcome in built:
        if outcome.error is None:
            looks.append((arm, trial, partial(_here, measurer, path, mod)))
    fastest: dict[int, tuple[float, float]] = {}
    for _ in range(PASSES):
        for number, (_, _, look) in enumerate(looks):
            if (taken := look()) is not None:
                fastest[number] = min(taken, fastest.get(number, taken))
    for number, (_, latency_s) in fastest.items():
        arm, trial, _ = looks[number]
        arm.again.append((trial, latency_s))
    for path in paths:
        path.unlink(missing_ok=True)


def _here(measurer: Measurer, library: Path, mod: Any) -> tuple[float, float] | None:
    outcome, latency_s = measurer.run_library(library, entry_argument_shapes(mod))
    if outcome.timing is None or latency_s is None:
        return None
    return min(outcome.timing.run_secs), latency_s


def _there(elsewhere: Elsewhere, trial: int) -> tuple[float, float]:
    run_secs = elsewhere.look_again(trial)
    return min(run_secs), float(np.mean(run_secs))


def _unnamed(number: int) -> Program:
    """Stand in for a program that is known by its number alone."""
    return Program("", "", [[0, number]])
