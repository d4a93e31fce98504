"""Which batch is measured next, and which is proposed ahead."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.search.history import TaskHistory
from costlib.search.tasks.planning import Plan, Planner, PlanningConfig
from costlib.search.tasks.relatives import Relatives
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.space.program import Program


class Search:
    """A search whose programs are numbers; it refuses one for each that it proposes."""

    def __init__(self, name: str, cluster: str, size: int = 10_000) -> None:
        shape = ("float32", (8, 8))
        self.task = SimpleNamespace(workload_id=name, name=name, arguments=(shape, shape))
        self.space = SimpleNamespace(cluster=cluster)
        self.history = TaskHistory()
        self.refused: set[str] = set()
        self.exhausted = False
        self.is_unsure = False
        self.asked: list[int] = []
        self._left = size

    @property
    def elite(self) -> list[tuple[float, Program]]:
        return self.history.elite

    def propose(self, count: int, priors: Sequence[Any] = ()) -> list[Any]:
        self.asked.append(count)
        count = min(count, self._left)
        self._left -= count
        self.exhausted = count == 0
        self.refused |= {f"{self.task.name}-refused-{len(self.asked)}"}
        return [self._proposal(len(self.asked) * 1000 + i, Origin.EVOLVED) for i in range(count)]

    def best(self) -> list[Any]:
        return [self._proposal(0, Origin.REPEATED)]

    def repeated(self) -> list[Any]:
        return self.best() if self.is_unsure else []

    def _proposal(self, number: int, origin: Origin) -> Any:
        program = Program(self.task.name, "sketch", [[0, number]])
        return SimpleNamespace(candidate=Candidate(program, None), origin=origin)


def planner(
    searches: Sequence[Search], scheduler: TaskScheduler | None = None, **config: Any
) -> Planner:
    some: Any = searches
    scheduler = scheduler or TaskScheduler(np.ones((1, len(searches))))
    return Planner(some, scheduler, Relatives(some), PlanningConfig(**config))


def measure(search: Search, scheduler: TaskScheduler, task: int, plan: Plan, best_s: float) -> None:
    for proposal in plan.proposals:
        search.history.add(proposal.candidate.program, best_s, proposal.origin)
    scheduler.observe(task, best_s)


def test_a_plan_names_task_programs_and_what_was_refused() -> None:
    searches = [Search("a", "one"), Search("b", "two")]
    plan = planner(searches).next(100, 100, 0.0)
    assert isinstance(plan, Plan)
    assert (plan.task, len(plan.proposals)) == (0, 4)
    assert plan.refused == ["a-refused-1"]
    assert plan.search_s > 0


def test_no_more_is_planned_than_is_left_but_for_a_second_look() -> None:
    plan = planner([Search("a", "one")]).next(100, 3, 0.0)
    assert isinstance(plan, Plan) and len(plan.proposals) == 2


def test_batches_grow_with_the_history() -> None:
    scheduler, search = TaskScheduler(np.ones((1, 1))), Search("a", "one")
    planned = planner([search], scheduler, growth=0.5)
    for _ in range(12):
        plan = planned.next(1000, 1000, 0.0)
        assert isinstance(plan, Plan)
        measure(search, scheduler, 0, plan, 1.0)
    assert search.asked[:4] == [4, 4, 4, 6]
    assert search.asked[-1] == 16


def test_the_last_trials_go_to_the_best_program_that_is_in_doubt() -> None:
    scheduler, search = TaskScheduler(np.ones((1, 1))), Search("a", "one")
    scheduler.observe(0, 1.0)
    search.is_unsure = True
    plan = planner([search], scheduler).next(8, 1, 0.0)
    assert isinstance(plan, Plan)
    assert [proposal.origin for proposal in plan.proposals] == [Origin.REPEATED]
    assert not plan.refused and not search.asked


def test_no_task_goes_without_a_trial_for_a_second_look() -> None:
    searches = [Search(str(number), str(number)) for number in range(8)]
    scheduler = TaskScheduler(np.ones((1, 8)))
    plans = planner(searches, scheduler, batch=1)
    for left in range(8, 0, -1):
        plan = plans.next(8, left, 0.0)
        assert isinstance(plan, Plan)
        searches[plan.task].is_unsure = True
        measure(searches[plan.task], scheduler, plan.task, plan, 1.0)
    assert all(search.elite for search in searches)


def test_a_batch_has_the_best_once_more_where_there_is_doubt() -> None:
    search = Search("a", "one")
    search.is_unsure = True
    plan = planner([search]).next(100, 100, 0.0)
    assert isinstance(plan, Plan)
    assert [p.origin for p in plan.proposals] == [Origin.REPEATED] + 3 * [Origin.EVOLVED]


def test_why_there_is_nothing_to_measure() -> None:
    scheduler, small = TaskScheduler(np.ones((1, 1))), Search("a", "one", size=4)
    planned = planner([small], scheduler)
    plan = planned.next(100, 100, 0.0)
    assert isinstance(plan, Plan)
    measure(small, scheduler, 0, plan, 1.0)
    assert planned.next(100, 96, 0.0) == "every program of every task was measured"
    settled = TaskScheduler(np.ones((1, 1)))
    for _ in range(50):
        settled.observe(0, 1.0)
    little = planner([Search("b", "one")], settled).next(1000, 800, 0.5)
    assert isinstance(little, str) and "less than 50.00%" in little


@pytest.mark.parametrize(
    ("objective", "settings"), [("early-stop", {}), ("requirement", {"required_s": [2.0]})]
)
def test_it_ends_where_nothing_is_to_be_gained(objective: Any, settings: Any) -> None:
    scheduler = TaskScheduler(np.ones((1, 1)), objective, **settings)
    for _ in range(10):
        scheduler.observe(0, 1.0)
    planned = planner([Search("a", "one")], scheduler)
    assert planned.next(1000, 800, 0.0) == "nothing more is to be gained"
    current = Plan(0, [])
    assert planned.ahead(current, 1000, 800, 0.0) is None


def test_ahead_is_another_task_while_the_first_programs_of_one_are_measured() -> None:
    searches = [Search("a", "one"), Search("b", "two")]
    planned = planner(searches)
    current = planned.next(100, 100, 0.0)
    assert isinstance(current, Plan)
    following = planned.ahead(current, 100, 100, 0.0)
    assert following is not None and following.task == 1
    assert following.refused == ["b-refused-1"]


def test_a_look_alike_waits_for_what_it_is_handed() -> None:
    planned = planner([Search("a", "one"), Search("b", "one")])
    current = planned.next(100, 100, 0.0)
    assert isinstance(current, Plan)
    assert planned.ahead(current, 100, 100, 0.0) is None


def test_a_look_alike_waits_no_longer_than_it_must() -> None:
    searches = [Search("a", "one"), Search("b", "one"), Search("c", "two")]
    scheduler = TaskScheduler(np.ones((1, 3)))
    planned = planner(searches, scheduler)
    tried = Plan(2, searches[2].propose(4))
    measure(searches[2], scheduler, 2, tried, 1.0)
    current = planned.next(100, 96, 0.0)
    assert isinstance(current, Plan) and current.task == 0
    assert planned.ahead(current, 100, 96, 0.0) is None
    measure(searches[0], scheduler, 0, current, 1.0)
    following = planned.next(100, 92, 0.0)
    assert isinstance(following, Plan) and following.task == 1


def test_a_settled_task_is_its_own_next() -> None:
    scheduler, search = TaskScheduler(np.ones((1, 1))), Search("a", "one")
    planned = planner([search], scheduler)
    for _ in range(4):
        plan = planned.next(100, 100, 0.0)
        assert isinstance(plan, Plan)
        measure(search, scheduler, 0, plan, 1.0)
    current = planned.next(100, 84, 0.0)
    assert isinstance(current, Plan)
    following = planned.ahead(current, 100, 84, 0.0)
    assert following is not None and following.task == 0
    assert planner([search], scheduler, ahead=False).ahead(current, 100, 84, 0.0) is None


def test_nothing_is_ahead_of_the_last_trials() -> None:
    searches = [Search("a", "one"), Search("b", "two")]
    planned = planner(searches)
    current = planned.next(4, 4, 0.0)
    assert isinstance(current, Plan)
    assert planned.ahead(current, 4, 4, 0.0) is None
