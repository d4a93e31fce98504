"""Which tasks of a run hand programs to which: Bayesian Code Diffusion (OSDI'25) and banks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from costlib.frozen import FrozenStrict
from costlib.hub.priors import PriorBank, flat_extents, similarity
from costlib.search.strategy import PRIORS, Prior, Strategy

_HANDED_ON = 2
"""Programs that a task hands to each that is like it."""


class RelativesConfig(FrozenStrict):
    """Settings of :class:`Relatives`.

    Attributes
    ----------
    diffusion
        Start from the programs of look-alike tasks of the same run.
    bank
        Start from the bundle's prior bank, and from the memory of earlier runs.
    """

    diffusion: bool = True
    bank: bool = True


class Relatives:
    """Look-alike tasks of a run: those with the same sketches.

    Parameters
    ----------
    searches
        The search of each task.
    banks
        Good programs of other runs.
    config
        Which of them to make use of.
    """

    def __init__(
        self,
        searches: Sequence[Strategy],
        banks: Sequence[PriorBank] = (),
        config: RelativesConfig | None = None,
    ) -> None:
        self._config = config or RelativesConfig()
        self._searches = searches
        self._banks = banks if self._config.bank else ()
        shapes = [[shape for _, shape in search.task.arguments] for search in searches]
        self._extents = [flat_extents(one) for one in shapes]

    def priors(self, task: int) -> list[Prior]:
        """Good programs of tasks like this one: of this run, of earlier ones, of the bundle."""
        search = self._searches[task]
        mates = [
            (similarity(self._extents[task], self._extents[other]), mate)
            for other, mate in enumerate(self._searches)
            if mate.elite and self.help(task, other)
        ]
        mates.sort(key=lambda pair: -pair[0])
        found = [
            Prior(program.sketch_id, program.decisions)
            for _, mate in mates
            for _, program in mate.elite[:_HANDED_ON]
        ]
        if not search.elite:
            for bank in self._banks:
                found += search.priors_in(bank)
        return found[: 2 * PRIORS]

    def typical_first(self) -> list[int]:
        """Order the tasks for their first batch: of each cluster the most typical one first."""
        count = len(self._searches)
        typical = np.zeros(count)
        for one in range(count):
            mates = [other for other in range(count) if self._alike(one, other)]
            if mates:
                pairs = (similarity(self._extents[one], self._extents[m]) for m in mates)
                typical[one] = np.mean(list(pairs))
        return sorted(range(count), key=lambda task: -typical[task])

    def help(self, one: int, other: int) -> bool:
        """Whether a task is handed programs of another."""
        return self._config.diffusion and self._alike(one, other)

    def _alike(self, one: int, other: int) -> bool:
        if one == other:
            return False
        a, b = self._searches[one], self._searches[other]
        return a.space.cluster == b.space.cluster and len(self._extents[one]) == len(
            self._extents[other]
        )
