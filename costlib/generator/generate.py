"""Programs written by a bundle's generator: no search, no measuring (TLM, OSDI'24).

Writing is cheap, so many are written, and as many drawn at random, lest a kind is missed that the
generator never writes; the best by the model of schedules are lowered, and the best of those by the
exact model are what is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from costlib.canary_times import CanaryTimes
from costlib.errors import InputError
from costlib.features.task_encoder import TaskEncoder
from costlib.frozen import Frozen
from costlib.generator.model import Generator
from costlib.generator.writer import Writer
from costlib.hardware import Hardware
from costlib.measure.measurement import Candidate
from costlib.models.base import CostModel
from costlib.schema import Origin
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import sketch_vectors
from costlib.tvm_compat.api import structural_key
from costlib.workloads import extract_tasks

_WRITTEN = 32
"""Programs that are written for each one asked for; as many are drawn."""

_LOWERED = 16
"""Of those, so many are lowered."""


class RankedProgram(Frozen):
    """A program, whether it was written or drawn at random, and the cost model's score."""

    program_id: str
    sketch_id: str
    decisions: str
    origin: Origin
    score: float


class Generated(Frozen):
    """What was written for a task, or drawn at random.

    Attributes
    ----------
    task, workload_id
        The task.
    written, drawn
        How many different programs were written, and how many others were drawn at random.
    lowered, valid
        How many of all these were lowered, and how many of those pass TVM's postprocessors.
    programs
        The valid ones with the highest scores, the best first; of those that come to the same
        code one.
    notice
        Why programs that should have been written were drawn at random.
    """

    task: str
    workload_id: str
    written: int
    drawn: int
    lowered: int
    valid: int
    programs: tuple[RankedProgram, ...]
    notice: str | None


def generate(
    source: Any,
    generator: Generator,
    model: CostModel,
    hardware: Hardware,
    count: int,
    *,
    draft: CostModel | None = None,
    canary: CanaryTimes | None = None,
    seed: int = 0,
    temperature: float = 1.0,
) -> Generated:
    """Write programs of a source's heaviest task and rank them.

    Parameters
    ----------
    source
        Whatever :func:`costlib.workloads.load_network` takes; networks have the tasks that
        :func:`costlib.tune` tunes.
    generator
        Writes them.
    model
        Scores lowered programs.
    hardware
        What to write for.
    count
        How many programs; many times as many are written, and drawn at random.
    draft
        A model of schedules, which chooses what is lowered; without it that is left to chance.
    canary
        What the hardware's canaries take, if known.
    seed
        Decides which.
    temperature
        See :meth:`costlib.generator.model.Generator.generate`.

    Raises
    ------
    InputError
        ``count`` is below 1, or the source has nothing to tune.
    """
    if count < 1:
        raise InputError(f"{count} programs were asked for; it must be at least 1")
    threads = len(os.sched_getaffinity(0))
    tasks = extract_tasks(source, hardware, layouts="channels-last")
    spaces = (DesignSpace(task, num_threads=threads) for task in tasks)
    space = next((space for space in spaces if space.is_tunable), None)
    if space is None:
        raise InputError(f"{source} has nothing to tune")
    task = space.task
    vectors = sketch_vectors(space, seed)
    writer = Writer(generator, task, hardware, vectors)
    made = writer.write_and_draw(_WRITTEN * count, np.random.default_rng(seed), temperature)
    encoder = TaskEncoder.of_space(space, hardware, canary)
    best = pick(made.programs, space, encoder, model, draft, count)
    origins = {p.program_id: o for p, o in zip(made.programs, made.origins, strict=True)}
    return Generated(
        task=task.name,
        workload_id=task.workload_id,
        written=made.origins.count(Origin.GENERATED),
        drawn=made.origins.count(Origin.RANDOM),
        lowered=best.lowered,
        valid=best.valid,
        programs=tuple(
            RankedProgram(
                program_id=candidate.program.program_id,
                sketch_id=candidate.program.sketch_id,
                decisions=candidate.program.decisions_json(),
                origin=origins[candidate.program.program_id],
                score=score,
            )
            for candidate, score in zip(best.candidates, best.scores, strict=True)
        ),
        notice=made.notice,
    )


@dataclass(frozen=True)
class Picked:
    """The best of many programs.

    Attributes
    ----------
    lowered, valid
        How many were lowered, and how many of those pass TVM's postprocessors.
    candidates, scores
        Valid ones and their scores, the best first.
    """

    lowered: int
    valid: int
    candidates: list[Candidate]
    scores: list[float]


def pick(
    programs: Sequence[Program],
    space: DesignSpace,
    encoder: TaskEncoder,
    model: CostModel,
    draft: CostModel | None,
    count: int,
) -> Picked:
    """Pick programs in two stages; of those that come to the same code one."""
    some = programs[: _LOWERED * count]
    if draft is not None and programs:
        drafted = draft.predict(encoder.schedules(programs))
        order = np.argsort(-drafted, kind="stable")[: _LOWERED * count]
        some = [programs[i] for i in order]
    lowered = zip(some, space.lower_all(some), strict=True)
    valid = [(program, schedule) for program, schedule in lowered if schedule is not None]
    by_code = {structural_key(schedule.mod): Candidate(p, schedule) for p, schedule in valid}
    distinct = list(by_code.values())
    if not distinct:
        return Picked(len(some), 0, [], [])
    scores = model.predict(encoder.lowered(space.context, [one.schedule for one in distinct]))
    order = np.argsort(-scores, kind="stable")[:count]
    return Picked(len(some), len(valid), [distinct[i] for i in order], scores[order].tolist())
