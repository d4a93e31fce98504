"""Programs of which a bundle's models are uncertain, and which may win.

A bundle ranks programs twice: by their schedules alone, and exactly, by their code. On a machine
that both were trained on the two agree; where they do not, at least one of them has to learn. A
program that neither thinks good teaches little that a search will ask.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from costlib.arrays import Floats
from costlib.canary_times import CanaryTimes
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurement import Candidate
from costlib.space.design_space import DesignSpace


def most_doubted(
    candidates: Sequence[Candidate],
    space: DesignSpace,
    hardware: Hardware,
    bundle: Bundle,
    canary: CanaryTimes | None = None,
) -> list[Candidate]:
    """Order a task's lowered programs by how much there is to learn from measuring them.

    Parameters
    ----------
    candidates
        Programs that passed the postprocessors.
    space
        The task's design space.
    hardware
        What they are for.
    bundle
        Its models; without one of schedules the order stays as it is.
    canary
        What the hardware's canaries take, if known.
    """
    if bundle.draft is None or not candidates:
        return list(candidates)
    encoder = TaskEncoder.of_space(space, hardware, canary)
    statements = encoder.lowered(space.context, [one.schedule for one in candidates])
    schedules = encoder.schedules([one.program for one in candidates])
    doubts = doubts_of(
        bundle.statement_model().predict(statements), bundle.draft.predict(schedules)
    )
    return [candidates[i] for i in np.argsort(-doubts, kind="stable")]


def doubts_of(one: Floats, other: Floats) -> Floats:
    """Return how much two models disagree on `n` programs of a task, those that may win first.

    Parameters
    ----------
    one, other
        float64 `n` each: their scores.

    Returns
    -------
    ndarray
        float64 `n`: by how much of the ranking their places differ, times the better place.
    """
    places = np.stack([rankdata(scores) / len(scores) for scores in (one, other)])
    return np.asarray(np.ptp(places, axis=0) * places.max(0))
