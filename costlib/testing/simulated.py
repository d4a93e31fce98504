"""A device that is not there: latencies from a formula or a table, at once and without noise.

For tests of search logic, which must be exact and fast. What it says about speed is worth nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from costlib.canary_times import CanaryTimes
from costlib.measure.building import Building
from costlib.measure.measurement import Candidate, Measurement
from costlib.schema import Status
from costlib.space.program import Program
from costlib.workloads.task import Task

Latency = Callable[[Task, Program], float | None]
"""A task and a program of it to seconds; ``None`` if it fails."""


class SimulatedDevice:
    """Measures like :class:`costlib.measure.measurer.Measurer`.

    Parameters
    ----------
    latency
        What each program takes.
    slow_down
        How much longer everything takes in truth, the canaries as well.

    Attributes
    ----------
    measured
        Everything that was measured, in order.
    """

    def __init__(self, latency: Latency, slow_down: float = 1.0) -> None:
        self.reference = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
        self.measured: list[Measurement] = []
        self._latency = latency
        self._slow_down = slow_down
        self._builder = ThreadPoolExecutor(1)

    def measure(
        self, task: Task, candidates: Sequence[Candidate], best_s: float | None = None
    ) -> list[Measurement]:
        """Look up each candidate."""
        with self.begin(task, candidates) as building:
            return building.run(best_s)

    def begin(self, task: Task, candidates: Sequence[Candidate]) -> Building[None]:
        """Look up each candidate when the caller asks for it."""

        def run(built: None, best_s: float | None) -> list[Measurement]:
            done = [self._one(task, candidate) for candidate in candidates]
            self.measured += done
            return done

        return Building(self._builder, lambda: None, run)

    def _one(self, task: Task, candidate: Candidate) -> Measurement:
        latency_s = self._latency(task, candidate.program)
        if latency_s is None:
            return Measurement(candidate.program, Status.RUN_ERROR, error="fails by definition")
        return Measurement(
            candidate.program,
            Status.OK,
            latency_s=latency_s,
            run_secs=(self._slow_down * latency_s,),
            canary_compute=(self._slow_down * self.reference.compute_s,),
            canary_memory=(self._slow_down * self.reference.memory_s,),
            build_secs=0.0,
        )


def recorded(latencies_s: Mapping[str, float]) -> Latency:
    """Take latencies from a table by program_id; what is not in it fails."""
    return lambda task, program: latencies_s.get(program.program_id)


def analytic(task: Task, program: Program) -> float | None:
    """A formula with one smooth optimum: innermost tiles of 8, the next of 4, unrolling of 64.

    Seconds; proportional to the task's FLOPs, twice as much for each factor of two that a tile is
    off.
    """
    return (task.flops + 1) * 1e-10 * 2 ** _distance(program)


def gentle(task: Task, program: Program) -> float | None:
    """A formula with the optimum of :func:`analytic`, but latencies as devices have them.

    Seconds; proportional to the task's FLOPs, and to one more than the factors of two that all
    tiles together are off.
    """
    return (task.flops + 1) * 1e-10 * (1 + _distance(program))


def _distance(program: Program) -> float:
    """How many factors of two a program is off the optimum."""
    distance = 0.0
    for _, value in program.decisions:
        if isinstance(value, list) and value:
            wanted = [4, 8][-len(value) :]
            inner = value[-len(wanted) :]
            distance += sum(
                abs(math.log2(have / want)) for have, want in zip(inner, wanted, strict=True)
            )
        elif isinstance(value, int):
            distance += 0.1 * abs(value - 2)
    return distance
