"""Programs that nobody measured, with the latency that a model of schedules expects of them.

A dataset holds a few dozen measured programs of a task, most of them slow: too few and too bad to
learn writing from. Under a fitted model thousands evolve in a second, and the best of them show a
generator what good ones look like. The model's scores become latencies by the task's measured
programs, so that both kinds are judged by the same standard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Programs:
    """Programs of one sketch: vectors int64 `n x d`, and seconds float64 `n`."""

    vectors: Integers
    latency_s: Floats


def imagine(
    workload: Mapping[str, Any],
    hardware: Hardware,
    vectors: Mapping[str, DecisionVectors],
    measured: Mapping[str, Programs],
    teacher: CostModel,
    good: int,
    random: int,
    rng: np.random.Generator,
) -> dict[str, Programs]:
    """Let the programs of a task evolve; return the best and others.

    Parameters
    ----------
    workload
        A row of a dataset's ``workloads``.
    hardware
        What the programs are for.
    vectors, measured
        The decisions of each sketch, by its id, and its measured programs.
    teacher
        A model of schedules.
    good
        How many of the best, of all sketches together.
    random
        How many of each sketch that are drawn at random.
    rng
        Decides how they evolve.

    Returns
    -------
    dict
        By sketch, the best first.
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
    pools = {name: SketchPool(one, encoders[name], context) for name, one in vectors.items()}
    known = {name: teacher.predict(pools[name].encode(p.vectors)) for name, p in measured.items()}
    slope, at_zero = _latency_by_score(
        np.concatenate(list(known.values())),
        np.log(np.concatenate([programs.latency_s for programs in measured.values()])),
    )
    evolved = {
        name: pool.evolve(
            pool.vectors.random(0, rng),
            _POPULATION,
            _GENERATIONS,
            _CROSSOVER,
            teacher.predict,
            lambda _, allowed: stock_probabilities(allowed),
            rng,
        )
        for name, pool in pools.items()
    }
    ordered = np.sort(np.concatenate([scores for _, scores in evolved.values()]))[::-1]
    threshold = ordered[:good].min(initial=np.inf)
    found = {}
    for name, (rows, scores) in evolved.items():
        drawn = vectors[name].random(random, rng)
        both = np.concatenate([rows[scores >= threshold], drawn])
        expected = [scores[scores >= threshold], teacher.predict(pools[name].encode(drawn))]
        found[name] = Programs(both, np.exp(at_zero + slope * np.concatenate(expected)))
    return found


def _latency_by_score(scores: Floats, log_latency: Floats) -> tuple[float, float]:
    """Fit a line: slope, at most 0, and the value at 0."""
    centred = scores - scores.mean()
    spread = float(centred @ centred)
    slope = min(float(centred @ log_latency) / spread, 0.0) if spread else 0.0
    return slope, float(log_latency.mean() - slope * scores.mean())
