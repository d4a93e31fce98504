"""Cases of a benchmark, raced one after the other: each is kept, none is raced twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.workloads.task import Task
from tools.benchmarks.loops import loops_of
from tools.benchmarks.race import Arm, race
from tools.evidence.races import Race, RacedTask, Side
from tools.evidence.store import Store

Details = Callable[[Measurer, Bundle], dict[str, Any]]


class Case(NamedTuple):
    """Tasks, and sides that are to race at them.

    Attributes
    ----------
    kind, what, seed
        See :class:`tools.evidence.races.Race`.
    arms
        Makes the sides.
    details
        Finds out what else belongs to the race, before it begins.
    """

    kind: str
    what: str
    seed: int | None
    tasks: Sequence[Task]
    arms: Callable[[Measurer, Bundle], Sequence[Arm]]
    details: Details = lambda _measurer, _bundle: {}

    def race(self, measurer: Measurer, bundle: Bundle) -> Race:
        """Race, and return all trials; of a single task, also the loops of the best programs."""
        details = self.details(measurer, bundle)
        arms = self.arms(measurer, bundle)
        race(arms, measurer)
        if len(self.tasks) == 1:
            best = {a.name: a.leaders[-1][1] for a in arms if a.leaders and a.elsewhere is None}
            details = {**details, "loops": {name: loops_of(mod) for name, mod in best.items()}}
        return Race(
            kind=self.kind,
            what=self.what,
            seed=self.seed,
            hardware=measurer.hardware.hardware_id,
            bundle=bundle.manifest.created,
            tasks=tuple(
                RacedTask(name=t.name, workload_id=t.workload_id, weight=t.weight, flops=t.flops)
                for t in self.tasks
            ),
            sides={arm.name: _side(arm) for arm in arms},
            details=details,
        )


def _side(arm: Arm) -> Side:
    return Side(
        trials=tuple(
            (task, None if s is None else _five_digits(s), round(elapsed, 2))
            for task, s, elapsed in arm.trials
        ),
        again=tuple((trial, _five_digits(s)) for trial, s in arm.again),
        active_s=round(arm.active_s, 1),
        measure_s=round(arm.measure_s, 1),
        settings=arm.settings,
    )


def _five_digits(seconds: float) -> float:
    return float(f"{seconds:.5g}")


def run_cases(
    store: Store[Race],
    cases: Callable[[Hardware], Iterable[Case]],
    bundle_name: str,
    minutes: float = float("inf"),
) -> None:
    """Race the cases that are missing; begin none after so many minutes."""
    end = time.monotonic() + 60 * minutes
    hardware, bundle = Hardware.local(), load_pretrained(bundle_name)
    with Measurer(hardware, reference=bundle.canary(hardware.hardware_id)) as measurer:
        for case in cases(hardware):
            name = Race.name_of(case.kind, case.what, case.seed)
            if name in store:
                continue
            if time.monotonic() > end:
                return
            store.save(case.race(measurer, bundle))
            print(name, flush=True)
