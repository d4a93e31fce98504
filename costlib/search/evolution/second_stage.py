"""The second stage of the search: drafts become code, which the exact model scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from costlib.arrays import Integers
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.search.strategy import Proposal, Strategy
from costlib.sketch_pool import SketchPool
from costlib.space.program import Program
from costlib.tvm_compat.api import structural_key

_MOST_REFUSED = 4
"""Drafts that are lowered in vain, for each one wanted, before the search goes on without."""


@dataclass(frozen=True)
class Draft:
    """A program that the first stage came up with, as a vector of its sketch's decisions."""

    pool: SketchPool
    vector: Integers
    program: Program
    origin: Origin


class SecondStage:
    """Lowers and scores drafts of one task.

    Parameters
    ----------
    search
        The task's search, which knows its design space, its models and what was measured.
    """

    def __init__(self, search: Strategy) -> None:
        self._search = search
        self._measured_code: set[int] = set()

    def survivors(self, drafts: Iterator[Draft], wanted: int) -> list[Proposal]:
        """Lower drafts until enough pass the postprocessors, and score them exactly.

        Different decisions may come to the same code; that is wanted once, and not if it was
        measured.
        """
        passed: dict[int, tuple[Candidate, Origin]] = {}
        tried = 0
        while len(passed) < wanted and (tried < _MOST_REFUSED * wanted or not passed):
            some = list(itertools.islice(drafts, wanted - len(passed)))
            if not some:
                break
            tried += len(some)
            schedules = self._search.space.lower_all([draft.program for draft in some])
            for draft, schedule in zip(some, schedules, strict=True):
                code = None if schedule is None else structural_key(schedule.mod)
                if code is None or code in self._measured_code:
                    self._search.refused.add(draft.program.program_id)
                else:
                    passed.setdefault(code, (Candidate(draft.program, schedule), draft.origin))
        return self._search.proposals(list(passed.values()))

    def begin(self, proposals: Sequence[Proposal]) -> None:
        """Take note of what is being measured."""
        schedules = [proposal.candidate.schedule for proposal in proposals]
        self._measured_code.update(structural_key(s.mod) for s in schedules if s is not None)
