"""The search as a source of programs for a dataset: what a tuning run would measure next.

A model that was trained on random programs alone has to rank in a run what it has seen little of.
What the search never asks about it would not learn of either, so half are of other niches.
"""

from __future__ import annotations

from collections.abc import Sequence

from costlib.collecting.proposals import Known
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.hub.catalog import load_pretrained
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import Status
from costlib.search.config import SearchConfig
from costlib.search.evolution.search import EvolutionarySearch
from costlib.search.run_model import RunModel
from costlib.workloads.task import Task

_ELSEWHERE = 0.5
"""Share of the programs that are of niches which were measured least."""


class BundleSearch:
    """Goes on with the search of any task from what was measured of it.

    Parameters
    ----------
    bundle
        Models and priors.
    hardware
        What to search for.
    """

    def __init__(self, bundle: Bundle, hardware: Hardware) -> None:
        self._bundle = bundle
        self._hardware = hardware
        self._config = SearchConfig()

    def __call__(
        self, task: Task, known: Sequence[Known], count: int, seed: int
    ) -> list[Candidate]:
        """Return up to ``count`` lowered programs that are not known."""
        model = RunModel(self._bundle, self._config, seed)
        search = EvolutionarySearch(task, self._hardware, model, self._config, seed)
        search.recall([_measurement(one) for one in known])
        model.refit()
        bank = self._bundle.priors
        priors = [] if bank is None or search.elite else search.priors_in(bank)
        elsewhere = search.propose(round(_ELSEWHERE * count), elsewhere=True) if count > 1 else []
        candidates = [one.candidate for one in [*elsewhere, *search.propose(count, priors)]]
        distinct = {candidate.program.program_id: candidate for candidate in candidates}
        return list(distinct.values())[:count]


def load_search(bundle: str, hardware: Hardware) -> BundleSearch:
    """Load a bundle, by its name or path, to search with."""
    return BundleSearch(load_pretrained(bundle), hardware)


def _measurement(known: Known) -> Measurement:
    status = Status.OK if known.latency_s is not None else Status.RUN_ERROR
    return Measurement(known.program, status, known.latency_s)
