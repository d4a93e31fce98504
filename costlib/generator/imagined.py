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

from costlib.arrays import Floats, Integers
from costlib.canary_times import CanaryTimes
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.models.base import CostModel
from costlib.sketch_pool import SketchPool
from costlib.space.directions import stock_probabilities
from costlib.space.vectors import DecisionVectors

_POPULATION = 256
_GENERATIONS = 4
_CROSSOVER = 0.2


@dataclass(frozen=True)
class Programs:
    """Programs of one sketch: vectors int64 `n x d`, and seconds float64 `n`."""

    vectors: Integers
    latency_s: Floats


class Judge:
    """What a model of schedules thinks of a task's programs, and which it likes best.

    Parameters
    ----------
    workload
        A row of a dataset's ``workloads``.
    hardware
        What the programs are for.
    vectors
        The decisions of each sketch, by its id.
    teacher
        The model.
    canary
        What the hardware's canaries take, if known.
    """

    def __init__(
        self,
        workload: Mapping[str, Any],
        hardware: Hardware,
        vectors: Mapping[str, DecisionVectors],
        teacher: CostModel,
        canary: CanaryTimes | None = None,
    ) -> None:
        sketches = {sketch_id: one.sketch.instructions for sketch_id, one in vectors.items()}
        encoder = TaskEncoder.of_row(workload, sketches, hardware, canary)
        self._teacher = teacher
        self._pools = {
            sketch_id: SketchPool(one, encoder.sketches[sketch_id], encoder.context)
            for sketch_id, one in vectors.items()
        }

    def scores(self, sketch_id: str, vectors: Integers) -> Floats:
        """Score programs of a sketch, int64 `n x d`; float64 `n`, higher is faster."""
        return self._teacher.predict(self._pools[sketch_id].encode(vectors))

    def evolved(self, rng: np.random.Generator) -> dict[str, tuple[Integers, Floats]]:
        """Let programs of each sketch evolve; vectors and scores, the best first."""
        return {
            sketch_id: pool.evolve(
                pool.vectors.random(0, rng),
                _POPULATION,
                _GENERATIONS,
                _CROSSOVER,
                self._teacher.predict,
                lambda _, allowed: stock_probabilities(allowed),
                rng,
            )
            for sketch_id, pool in self._pools.items()
        }

    def imagine(
        self,
        measured: Mapping[str, Programs],
        good: int,
        random: int,
        rng: np.random.Generator,
        slope: float = -1.0,
    ) -> tuple[dict[str, Programs], float]:
        """Let the programs of the task evolve; return the best and others.

        Parameters
        ----------
        measured
            The measured programs of each sketch, by its id. If there are none, latencies are those
            relative to a program of score 0.
        good, random
            How many of the best of each sketch, and how many that are drawn at random.
        rng
            Decides how they evolve.
        slope
            Of a task without measured programs.

        Returns
        -------
        programs, slope
            By sketch, the best first; and by how much the logarithm of the latency changes with the
            model's score, at most 0.
        """
        known = {k: self.scores(k, p.vectors) for k, p in measured.items() if len(p.vectors)}
        at_zero = 0.0
        if known:
            slope, at_zero = _latency_by_score(
                np.concatenate(list(known.values())),
                np.log(np.concatenate([measured[name].latency_s for name in known])),
            )
        found = {}
        for name, (rows, scores) in self.evolved(rng).items():
            drawn = self._pools[name].vectors.random(random, rng)
            both = np.concatenate([rows[:good], drawn])
            expected = np.concatenate([scores[:good], self.scores(name, drawn)])
            found[name] = Programs(both, np.exp(at_zero + slope * expected))
        return found, slope


def _latency_by_score(scores: Floats, log_latency: Floats) -> tuple[float, float]:
    """Fit a line: slope, at most 0, and the value at 0."""
    centred = scores - scores.mean()
    spread = float(centred @ centred)
    slope = min(float(centred @ log_latency) / spread, 0.0) if spread else 0.0
    return slope, float(log_latency.mean() - slope * scores.mean())
