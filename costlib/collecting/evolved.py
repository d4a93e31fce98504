"""The search as a source of programs for a dataset: what a tuning run would measure next.

A model that was trained on random programs alone has to rank in a run what it has seen little of.
What the search never asks about it would not learn of either, so half are of other niches.
"""

from __future__ import annotations

from costlib.canary_times import CanaryTimes
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import Status
from costlib.search.evolution.search import EvolutionarySearch, EvolutionConfig
from costlib.search.history import TaskHistory
from costlib.search.run_model import RunModel
from costlib.space.program import Program
from costlib.workloads.task import Task

_ELSEWHERE = 0.5
"""Share of the programs that are of niches which were measured least."""


def evolve(
    task: Task,
    hardware: Hardware,
    bundle: Bundle,
    known: TaskHistory,
    count: int,
    seed: int,
    canary: CanaryTimes | None = None,
) -> list[Candidate]:
    """Go on with the search of a task from what was measured of it.

    ``canary`` is what the hardware's canaries take, if known.

    Returns
    -------
    list of Candidate
        Up to ``count`` lowered programs that are not known.
    """
    model = RunModel(bundle, seed=seed, canary=canary)
    search = EvolutionarySearch(task, hardware, model, EvolutionConfig(), seed)
    search.recall([_measurement(known, program) for program in known.programs.values()])
    model.refit()
    bank = bundle.priors
    priors = [] if bank is None or search.elite else search.priors_in(bank)
    elsewhere = search.propose(round(_ELSEWHERE * count), elsewhere=True) if count > 1 else []
    candidates = [one.candidate for one in [*elsewhere, *search.propose(count, priors)]]
    distinct = {candidate.program.program_id: candidate for candidate in candidates}
    return list(distinct.values())[:count]


def _measurement(known: TaskHistory, program: Program) -> Measurement:
    latency_s = known.latencies_s.get(program.program_id)
    status = Status.RUN_ERROR if latency_s is None else Status.OK
    return Measurement(program, status, latency_s)
