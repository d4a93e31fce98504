"""Random programs, the baseline of every search; and the shortest example of a strategy."""

from __future__ import annotations

from collections.abc import Sequence

from costlib.hardware import Hardware
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.search.run_model import RunModel
from costlib.search.strategy import Prior, Proposal, Strategy, StrategyConfig
from costlib.workloads.task import Task

_MAX_DRAWS = 50
"""Draws for each program wanted, before a space counts as exhausted."""


class RandomSearch(Strategy):
    """Draws programs as MetaSchedule samples them, and asks no model."""

    def propose(self, count: int, priors: Sequence[Prior] = ()) -> list[Proposal]:
        """Return random programs; see :meth:`Strategy.propose`."""
        drawn: dict[str, tuple[Candidate, Origin]] = {}
        stream = self.space.sample(int(self._rng().integers(2**31)))
        for program, schedule in (next(stream) for _ in range(_MAX_DRAWS * count)):
            if schedule is not None and self.is_open(program):
                drawn[program.program_id] = (Candidate(program, schedule), Origin.RANDOM)
            if len(drawn) == count:
                break
        self.exhausted = not drawn
        return self.proposals(list(drawn.values()))


class RandomConfig(StrategyConfig):
    """Settings of :class:`RandomSearch`."""

    def start(self, task: Task, hardware: Hardware, model: RunModel, seed: int = 0) -> Strategy:
        """Begin a random search."""
        return RandomSearch(task, hardware, model, self, seed)
