"""What a run measures next: which task, and which of its programs."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import NamedTuple

from pydantic import Field

from costlib.frozen import FrozenStrict
from costlib.schema import Origin
from costlib.search.strategy import Proposal, Strategy
from costlib.search.tasks.relatives import Relatives
from costlib.search.tasks.scheduler import TaskScheduler

_CLOSING_SHARE = 1 / 8
"""Of the trials at most, to measure the best programs again that there is doubt about."""

_SETTLED = 16
"""Programs of a task from which on a batch need not wait for the one before it."""

_LESSER_TRIALS = 4
_LESSER_SHARE = 1 / 2
"""So many trials are kept for each lesser task, at most this share of all for all of them."""

_LARGEST = 4
"""How many times as large as its first ones a task's batches become."""


class PlanningConfig(FrozenStrict):
    """Settings of :class:`Planner`.

    Attributes
    ----------
    batch, growth
        Programs of a task that are measured between two rounds of search: so many, or this share of
        those that were measured before, if that is more; at most four times as many.
    ahead
        Propose a batch while the one before it is built.
    """

    batch: int = Field(4, ge=1)
    growth: float = Field(0.25, ge=0)
    ahead: bool = True


class Plan(NamedTuple):
    """A batch that is to be measured.

    Attributes
    ----------
    task, proposals
        Index of the task, and programs of it.
    refused
        Ids of programs that were refused while these were looked for.
    search_s
        Seconds spent on proposing them while nothing else went on.
    """

    task: int
    proposals: Sequence[Proposal]
    refused: Sequence[str] = ()
    search_s: float = 0.0


class Planner:
    """Plans one batch after the other.

    Parameters
    ----------
    searches
        The search of each task.
    scheduler
        Divides the trials among them.
    relatives
        Which tasks help which.
    config
        How to search.
    lesser
        Tasks whose turn comes when only what is kept for them is left: by then they can begin with
        programs of the others.
    """

    def __init__(
        self,
        searches: Sequence[Strategy],
        scheduler: TaskScheduler,
        relatives: Relatives,
        config: PlanningConfig,
        lesser: Collection[int] = (),
    ) -> None:
        self._searches = searches
        self._scheduler = scheduler
        self._relatives = relatives
        self._config = config
        self._order = relatives.typical_first()
        self._lesser = frozenset(lesser)

    def next(self, trials: int, left: int, min_gain: float) -> Plan | str:
        """Plan a batch, or say why there is nothing to measure.

        Parameters
        ----------
        trials, left
            Programs to measure in all, and those of them that are not measured yet.
        min_gain
            A batch is expected to lower the objective by at least this share.
        """
        started = time.perf_counter()
        while True:
            unsure, open_tasks = self._unsure(), self._open(trials, left)
            closing = not self._untried(open_tasks) and left <= min(len(unsure), _kept(trials))
            choice = self._scheduler.choose(unsure if closing else open_tasks)
            if choice is None:
                return self._why_over()
            if not (closing or choice.promises(min_gain)):
                return _too_little(choice.gain, min_gain)
            known = set(self._searches[choice.task].refused)
            if closing:
                proposals = self._searches[choice.task].best()
            else:
                fresh = left - min(len({*unsure, choice.task}), _kept(trials))
                proposals = self._batch(
                    choice.task, max(min(fresh, self._most(choice.task, trials)), 1)
                )
            if proposals:
                search_s = time.perf_counter() - started
                return Plan(choice.task, proposals, self._refused(choice.task, known), search_s)

    def ahead(self, current: Plan, trials: int, left: int, min_gain: float) -> Plan | None:
        """Plan what is measured after ``current`` before it is known how that comes out.

        Parameters
        ----------
        current
            What is being measured, see :meth:`costlib.search.strategy.Strategy.begin`.
        trials, left, min_gain
            As of :meth:`next`; ``current`` is left, too.

        Returns
        -------
        Plan
            ``None`` where it should be known: the last trials go to the best programs, and the
            first of a task are not kept waiting by further ones of another.
        """
        if not self._config.ahead:
            return None
        open_tasks = self._open(trials, left)
        free = [task for task in open_tasks if not self._learns(task, current.task)]
        untried = self._untried(open_tasks)
        choice = self._scheduler.choose([one for one in free if one in untried or not untried])
        if choice is None or not choice.promises(min_gain):
            return None
        known = set(self._searches[choice.task].refused)
        maybe_unsure = {*self._unsure(), choice.task, current.task}
        fresh = left - len(current.proposals) - min(len(maybe_unsure), _kept(trials))
        fresh = min(fresh, self._most(choice.task, trials))
        proposals = self._batch(choice.task, fresh, current) if fresh > 0 else []
        if not proposals:
            return None
        return Plan(choice.task, proposals, self._refused(choice.task, known))

    def _learns(self, task: int, current: int) -> bool:
        """Whether a task's next batch should wait for what is being measured of ``current``.

        So do the first ones of a task, and the very first one of a task that is like ``current``.
        """
        search = self._searches[task]
        if task == current:
            return len(search.history.measured) < _SETTLED
        return not search.elite and self._relatives.help(task, current)

    def _batch(self, task: int, most: int, current: Plan | None = None) -> list[Proposal]:
        """Programs of a task: its best again if there is doubt, and new ones; the more, the longer
        it has been searched.
        """
        search, config = self._searches[task], self._config
        grown = min(int(config.growth * len(search.history.measured)), _LARGEST * config.batch)
        count = min(max(config.batch, grown), most)
        at_it = current is not None and current.task == task and _has_repeated(current)
        proposals = [] if at_it else search.repeated()
        if fresh := count - len(proposals):
            proposals += search.propose(fresh, self._relatives.priors(task))
        return proposals

    def _refused(self, task: int, known: set[str]) -> list[str]:
        return sorted(self._searches[task].refused - known)

    def _why_over(self) -> str:
        if not self._searches:
            return "no task has anything to tune"
        if not any(search.history.measured for search in self._searches):
            return "no program of any task is valid"
        return "every program of every task was measured"

    def _unsure(self) -> list[int]:
        return [task for task in self._order if self._searches[task].is_unsure]

    def _open(self, trials: int, left: int) -> list[int]:
        found = [task for task in self._order if not self._searches[task].exhausted]
        kept = len(self._lesser) * self._each(trials) + _kept(trials)
        first = [task for task in found if task not in self._lesser]
        return first if first and left > kept else found

    def _untried(self, tasks: Sequence[int]) -> set[int]:
        """Those of which no program has been measured or is being measured."""
        return {task for task in tasks if not self._searches[task].history.measured}

    def _each(self, trials: int) -> int:
        """Trials that are kept for each lesser task."""
        most = lesser_trials(trials) // max(len(self._lesser), 1)
        return max(1, min(_LESSER_TRIALS, most))

    def _most(self, task: int, trials: int) -> int:
        """Programs of a task that may be measured at once."""
        return self._each(trials) if task in self._lesser else trials


def lesser_trials(trials: int) -> int:
    """Return how many of a run's trials its lesser tasks get at most, if each has at least one."""
    return int(_LESSER_SHARE * trials)


def _too_little(gain: float, min_gain: float) -> str:
    if not gain:
        return "nothing more is to be gained"
    return f"another batch is expected to gain {gain:.2%}, less than {min_gain:.2%}"


def _kept(trials: int) -> int:
    """Trials that are kept for the best programs."""
    return int(_CLOSING_SHARE * trials)


def _has_repeated(plan: Plan) -> bool:
    return any(proposal.origin is Origin.REPEATED for proposal in plan.proposals)
