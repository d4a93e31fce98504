"""The second stage of the search: drafts become code, which the exact model scores."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from costlib.measure.measurer import Candidate
from costlib.schema import Origin
from costlib.search.strategy import Proposal, Strategy
from costlib.space.program import Program
from costlib.space.vectors import Integers
from costlib.training.sketch_pool import SketchPool
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
    """Lowers and scores drafts of one task; what is not measured stays in the race.

    Parameters
    ----------
    search
        The task's search, which knows its design space, its models and what was measured.
    kept
        How many survivors stay for the next round, the best.
    """

    def __init__(self, search: Strategy, kept: int) -> None:
        self._search = search
        self._kept = kept
        self._measured_code: set[int] = set()
        self._refused: set[str] = set()
        self._left: dict[str, Proposal] = {}
        self._code_of: dict[str, int] = {}

    def is_open(self, program: Program) -> bool:
        """Whether it was not measured and, as far as is known, is valid and new as code."""
        name = program.program_id
        return name not in self._search.measured and name not in self._refused

    def survivors(self, drafts: Iterator[Draft], wanted: int) -> list[Proposal]:
        """Lower drafts until enough pass the postprocessors, and score them exactly.

        Different decisions may come to the same code; that is wanted once, and not if it was
        measured. All that was left before survives as well, and is not lowered again.
        """
        taken = self._measured_code.union(self._code_of.values())
        passed: dict[int, tuple[Candidate, Origin]] = {}
        tried = met = 0
        while tried < _MOST_REFUSED * wanted or not (passed or self._left):
            some = list(itertools.islice(drafts, wanted - met - len(passed)))
            if not some:
                break
            tried += len(some)
            new = [draft for draft in some if draft.program.program_id not in self._left]
            met += len(some) - len(new)
            schedules = self._search.space.lower_all([draft.program for draft in new])
            for draft, schedule in zip(new, schedules, strict=True):
                name = draft.program.program_id
                code = None if schedule is None else structural_key(schedule.mod)
                if code is None or code in taken:
                    self._refused.add(name)
                else:
                    self._code_of[name] = code
                    passed.setdefault(code, (Candidate(draft.program, schedule), draft.origin))
        known = self._search.rescored(list(self._left.values()))
        return [*known, *self._search.proposals(list(passed.values()))]

    def leave(self, proposals: Sequence[Proposal]) -> None:
        """Keep the best of the survivors that are not measured now."""
        best = sorted(proposals, key=lambda one: -one.score)[: self._kept]
        self._left = {one.candidate.program.program_id: one for one in best}
        self._code_of = {name: self._code_of[name] for name in self._left}

    def observe(self, proposals: Sequence[Proposal]) -> None:
        """Take note of what was measured."""
        schedules = [proposal.candidate.schedule for proposal in proposals]
        self._measured_code.update(structural_key(s.mod) for s in schedules if s is not None)
