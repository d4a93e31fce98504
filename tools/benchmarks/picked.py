"""Sides of a race that do not search: programs that a bundle's models pick.

Of many programs, written by the bundle's generator or drawn at random, those with the highest
scores are measured, as ``costlib generate`` picks them.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from costlib.features.task_encoder import TaskEncoder
from costlib.generator.generate import pick
from costlib.generator.writer import Writer, Written
from costlib.hub.bundle import Bundle
from costlib.measure.measurement import Candidate
from costlib.measure.measurer import Measurer
from costlib.space.design_space import DesignSpace
from costlib.space.vectors import sketch_vectors
from costlib.workloads.task import Task
from tools.benchmarks.race import Arm, Turns
from tools.evidence.protocol import PICKED, WRITTEN

_BATCH = 4

Make = Callable[[Writer, int, np.random.Generator], Written]
MAKERS: dict[str, Make] = {
    "generate": Writer.write_and_draw,
    "written": Writer.write_all,
    "sampled": Writer.draw,
}
"""Written programs and as many random ones, as ``costlib generate`` makes them; either alone."""


def picked(
    way: str,
    tasks: Sequence[Task],
    seed: int,
    measurer: Measurer,
    bundle: Bundle,
    count: int = PICKED,
) -> Arm:
    """Measure ``count`` programs of each task, a batch of each in turn, the best first."""
    hardware = measurer.hardware

    def run(arm: Arm, turns: Turns) -> None:
        def best_of(task: Task) -> list[Candidate]:
            space = DesignSpace(task, num_threads=hardware.num_cores)
            vectors = sketch_vectors(space, seed)
            writer = Writer(bundle.require_generator(), task, hardware, vectors)
            programs = MAKERS[way](writer, WRITTEN, np.random.default_rng(seed)).programs
            encoder = TaskEncoder.of_space(space, hardware, measurer.reference)
            model = bundle.statement_model()
            return pick(programs, space, encoder, model, bundle.draft, count).candidates

        best = [best_of(task) for task in tasks]
        best_s: dict[int, float] = {}
        for start, number in itertools.product(range(0, count, _BATCH), range(len(tasks))):
            some = best[number][start : start + _BATCH]
            if not some:
                continue
            began = time.perf_counter()
            batch = measurer.measure(tasks[number], some, best_s.get(number))
            arm.measure_s += time.perf_counter() - began
            known = [m.latency_s for m in batch if m.latency_s is not None and not m.raced]
            if known:
                best_s[number] = min(*known, best_s.get(number, math.inf))
            arm.note(number, [m.latency_s for m in batch], [one.schedule for one in some])
            arm.end(turns)
            arm.begin(turns)

    return Arm(way, run)
