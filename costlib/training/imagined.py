"""Programs that a model of schedules thinks good, found as a search finds them, none measured.

A dataset holds a few dozen measured programs of a task, too few to learn writing from. Under a
fitted model thousands evolve in a second, and the best of them show a generator what good ones look
like before it sees those that were measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from costlib.features.context import task_features
from costlib.features.task_encoders import schedule_encoders
from costlib.hardware import Hardware
from costlib.models.base import CostModel
from costlib.space.vectors import DecisionVectors, Integers
from costlib.training.directions import stock_probabilities
from costlib.training.sketch_pool import SketchPool
from costlib.tvm_compat.api import module_from_json

_POPULATION = 256
_GENERATIONS = 4
_CROSSOVER = 0.2


def imagine(
    workload: Mapping[str, Any],
    hardware: Hardware,
    vectors: Mapping[str, DecisionVectors],
    teacher: CostModel,
    count: int,
    rng: np.random.Generator,
) -> dict[str, Integers]:
    """Let the programs of a task evolve and return the best.

    Parameters
    ----------
    workload
        A row of a dataset's ``workloads``.
    hardware
        What the programs are for.
    vectors
        The decisions of each sketch, by its id.
    teacher
        A model of schedules.
    count
        How many programs, of all sketches together.
    rng
        Decides how they evolve.

    Returns
    -------
    dict
        int64 `n x d` vectors by sketch, the best first.
    """
    mod_json = workload["mod_json"]
    encoders = schedule_encoders(
        workload["name"],
        [argument["shape"] for argument in workload["arguments"]],
        None if mod_json is None else module_from_json(mod_json),
        {sketch_id: one.sketch.instructions for sketch_id, one in vectors.items()},
        hardware,
    )
    context = task_features(workload["flops"] or 0.0, hardware)
    evolved = {
        sketch_id: SketchPool(one, encoders[sketch_id], context).evolve(
            one.random(0, rng),
            _POPULATION,
            _GENERATIONS,
            _CROSSOVER,
            teacher.predict,
            lambda _, allowed: stock_probabilities(allowed),
            rng,
        )
        for sketch_id, one in vectors.items()
    }
    scores = np.sort(np.concatenate([scores for _, scores in evolved.values()]))
    least = scores[-min(count, len(scores))]
    return {sketch_id: rows[scores >= least] for sketch_id, (rows, scores) in evolved.items()}
