"""Random programs of a dozen operators, for what is measured of the measuring."""

from __future__ import annotations

import itertools
from typing import Any

from costlib.hardware import Hardware
from costlib.measure.measurement import Candidate
from costlib.space.design_space import DesignSpace
from costlib.workloads import Task, extract_tasks

OPERATORS = (
    "matmul 512 512 512",
    "dense 128 768 768",
    "batch_matmul 12 128 128 64",
    "conv2d 1 64 56 56 64 3 pad=1",
    "conv2d 1 256 14 14 256 1",
    "depthwise_conv2d 1 144 56 56 3 pad=1",
    "conv3d 1 16 8 28 28 32 3 pad=1",
    "conv2d_transpose 1 128 8 8 64 4 stride=2 pad=1",
    "softmax 1536 128",
    "layer_norm 128 768",
)


def heaviest_task(operator: str, hardware: Hardware) -> Task:
    """Return the task of an operator that does most of its arithmetic."""
    return extract_tasks(operator, hardware)[0]


def random_candidates(task: Task, count: int, seed: int) -> list[Candidate]:
    """Draw distinct valid programs of a task."""
    valid = (
        Candidate(program, schedule)
        for program, schedule in DesignSpace(task).sample(seed)
        if schedule is not None
    )
    distinct: dict[str, Candidate] = {}
    for candidate in itertools.islice(valid, 20 * count):
        distinct.setdefault(candidate.program.program_id, candidate)
        if len(distinct) == count:
            break
    return list(distinct.values())


def random_modules(task: Task, count: int, seed: int) -> list[Any]:
    """Draw distinct valid programs of a task; return their TVM modules."""
    drawn = random_candidates(task, count, seed)
    return [candidate.schedule.mod for candidate in drawn if candidate.schedule is not None]
