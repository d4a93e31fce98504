"""What an adaptation came to: quality by minutes, and how steady the machine was."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from costlib.collecting.ledger import Ledger
from costlib.data.dataset import Dataset
from costlib.data.drift import Steadiness, canary_ratios, steadiness
from costlib.frozen import FrozenStrict
from costlib.hub.bundle import Bundle
from costlib.hub.fine_tuning import FineTuning
from costlib.models.base import CostModel
from costlib.training.batches import assemble
from costlib.training.metrics import Metrics, evaluate_scores

KEY = "adapted"
"""Where a manifest's metrics have :class:`Adapted`."""

_FEW_APART = 8
"""With fewer tasks to judge on, figures say little."""

_UNSTEADY = 0.25
"""From which share of doubtful measurements on the figures are called unsure."""


class CurvePoint(FrozenStrict):
    """How good models were after some minutes, on all tasks that were kept apart.

    Attributes
    ----------
    minutes
        After how many; 0 for the bundle that it started from.
    programs, tasks
        How many had been measured to learn from.
    model, draft
        The figures of the cost model and of the model of schedules.
    """

    minutes: float
    programs: int
    tasks: int
    model: Metrics
    draft: Metrics | None


class Adapted(FrozenStrict):
    """What an adaptation measured, and what came of it.

    Attributes
    ----------
    minutes
        How many were spent.
    programs, tasks, apart
        How many were measured in all, and how many of the tasks were kept apart.
    curve
        Quality by minutes.
    machine
        How steady the machine was.
    doubt
        A line that says why the figures are not sure; empty if they are.
    """

    minutes: float
    programs: int
    tasks: int
    apart: int
    curve: tuple[CurvePoint, ...]
    machine: Steadiness | None
    doubt: str


def adapted_of(bundle: Bundle) -> Adapted | None:
    """Return how a bundle was adapted, ``None`` if it was not."""
    found = bundle.manifest.metrics.get(KEY)
    return None if found is None else Adapted.model_validate(found)


def earlier_points(ledger: Ledger, start: Bundle, dataset: Dataset) -> list[CurvePoint]:
    """Judge the models of earlier points on all tasks that are kept apart by now."""
    points = ledger.state.points
    models = [ledger.models(number, start) for number in range(len(points))]
    exact = _judge((model for model, _ in models), dataset, ledger.apart)
    drafts = _judge((draft for _, draft in models if draft is not None), dataset, ledger.apart)
    return [
        CurvePoint(
            minutes=point.minutes,
            programs=point.programs,
            tasks=point.tasks,
            model=exact[number],
            draft=drafts[number] if drafts else None,
        )
        for number, point in enumerate(points)
    ]


def summed_up(
    tuning: FineTuning,
    earlier: list[CurvePoint],
    minutes: float,
    dataset: Dataset,
    hardware_id: str,
) -> Adapted:
    """Return what an adaptation has come to after so many minutes."""
    draft = tuning.draft
    first = CurvePoint(
        minutes=0,
        programs=0,
        tasks=0,
        model=tuning.model.before,
        draft=None if draft is None else draft.before,
    )
    last = CurvePoint(
        minutes=minutes,
        programs=tuning.programs,
        tasks=tuning.tasks,
        model=tuning.model.after,
        draft=None if draft is None else draft.after,
    )
    rows = dataset.scan().filter(pl.col("hardware") == hardware_id).collect()
    reference = dataset.canary(hardware_id)
    machine = None if reference is None else steadiness(canary_ratios(rows, reference))
    apart = tuning.model.before.tasks
    return Adapted(
        minutes=minutes,
        programs=rows["program_id"].n_unique(),
        tasks=rows["workload_id"].n_unique(),
        apart=apart,
        curve=(first, *earlier, last),
        machine=machine,
        doubt=doubt_of(apart, machine),
    )


def doubt_of(apart: int, machine: Steadiness | None) -> str:
    """Say in a line why figures are not sure, by the tasks judged on and the machine's state."""
    reasons = []
    if apart < _FEW_APART:
        tasks = "one task" if apart == 1 else f"{apart} tasks"
        reasons.append(f"only {tasks} could be judged on, more minutes bring more")
    if machine is not None and machine.doubtful >= _UNSTEADY:
        reasons.append(
            f"the machine was busy or changed its speed in {100 * machine.doubtful:.0f} % "
            f"of the measurements (the worst tenth: {machine.slow_down:.2f} times slower)"
        )
    return "the figures are not sure: " + "; ".join(reasons) if reasons else ""


def _judge(models: Iterable[CostModel], dataset: Dataset, apart: frozenset[str]) -> list[Metrics]:
    """Judge models of one view."""
    found = list(models)
    if not found:
        return []
    data = assemble(dataset, only=apart, view=found[0].view)
    return [evaluate_scores(one.predict(data.batch), data.latency_s, data.groups) for one in found]
