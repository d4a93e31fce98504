"""Sides of a race (:mod:`search_arms`) that do not search: programs that a bundle's models pick.

Of many programs, written by the bundle's generator or drawn at random, those with the highest
scores are measured, as ``costlib generate`` picks them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from search_arms import Arm, Turns

from costlib.hub.bundle import Bundle
from costlib.hub.scorer import BundleScorer
from costlib.measure.measurer import Measurer
from costlib.search.generate import Writer, Written, pick
from costlib.space.design_space import DesignSpace
from costlib.space.vectors import sketch_vectors
from costlib.workloads.task import Task

PICKED = 32
"""Programs that are measured."""

_WRITTEN = 32 * PICKED
_BATCH = 4

Make = Callable[[Writer, int, np.random.Generator], Written]


def generated(
    task: Task, seed: int, measurer: Measurer, bundle: Bundle
) -> Callable[[Arm, Turns], None]:
    """Written ones and as many random ones, as ``costlib generate`` makes them."""
    return _picked(Writer.write_and_draw, task, seed, measurer, bundle)


def written(
    task: Task, seed: int, measurer: Measurer, bundle: Bundle
) -> Callable[[Arm, Turns], None]:
    """Programs of the bundle's generator alone."""
    return _picked(Writer.write_all, task, seed, measurer, bundle)


def sampled(
    task: Task, seed: int, measurer: Measurer, bundle: Bundle
) -> Callable[[Arm, Turns], None]:
    """Random programs alone."""
    return _picked(Writer.draw, task, seed, measurer, bundle)


def _picked(
    make: Make, task: Task, seed: int, measurer: Measurer, bundle: Bundle
) -> Callable[[Arm, Turns], None]:
    def run(arm: Arm, turns: Turns) -> None:
        space = DesignSpace(task, num_threads=measurer.hardware.num_cores)
        scorer = BundleScorer(bundle, measurer.hardware)
        vectors = sketch_vectors(space, seed)
        writer = Writer(bundle.require_generator(), task, measurer.hardware, vectors)
        programs = make(writer, _WRITTEN, np.random.default_rng(seed)).programs
        candidates = pick(programs, space, scorer, PICKED).candidates
        best_s: float | None = None
        for start in range(0, len(candidates), _BATCH):
            some = candidates[start : start + _BATCH]
            began = time.perf_counter()
            batch = measurer.measure(task, some, best_s)
            arm.measure_s += time.perf_counter() - began
            known = [m.latency_s for m in batch if m.latency_s is not None and not m.raced]
            best_s = min([*known, *([] if best_s is None else [best_s])], default=None)
            arm.note(0, [m.latency_s for m in batch], [one.schedule for one in some])
            arm.end(turns)
            arm.begin(turns)

    return run
