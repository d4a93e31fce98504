from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import pytest

from costlib.arrays import Integers
from costlib.collecting.evolved import evolve
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.schema import Origin
from costlib.search.history import TaskHistory
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors, sketch_vectors
from costlib.workloads import Task, extract_tasks


def known(programs: Iterable[Program], latencies_s: Iterable[float | None]) -> TaskHistory:
    history = TaskHistory()
    for program, latency_s in zip(programs, latencies_s, strict=True):
        history.add(program, latency_s, Origin.RANDOM)
    return history


@pytest.fixture(scope="module")
def task(hardware: Hardware) -> Task:
    return extract_tasks("matmul 64 96 128", hardware)[0]


def test_a_search_goes_on_from_what_is_known(
    bundle: Bundle, hardware: Hardware, task: Task
) -> None:
    drawn = {p.program_id: p for p, _ in islice(DesignSpace(task).sample(0), 24)}
    count = len(drawn)
    rising = known(drawn.values(), [1e-3 * (1 + n) for n in range(count)])
    falling = known(drawn.values(), [1e-3 * (24 - n) for n in range(count)])
    proposed = []
    for history in (rising, rising, falling):
        ids = [one.program.program_id for one in evolve(task, hardware, bundle, history, 8, 0)]
        assert len(set(ids)) == 8
        assert not set(ids) & set(drawn)
        proposed.append(ids)
    assert proposed[0] == proposed[1]
    assert set(proposed[0]) != set(proposed[2]), "it learns from latencies"


def test_half_are_of_niches_apart(bundle: Bundle, hardware: Hardware) -> None:
    (conv,) = extract_tasks("conv2d 1 16 14 14 32 3 pad=1", hardware)
    space = DesignSpace(conv)
    drawn = islice(space.sample(0), 24)
    improving = known((program for program, _ in drawn), [1e-3 / (1 + n) for n in range(24)])
    proposed = [one.program for one in evolve(conv, hardware, bundle, improving, 16, 0)]
    vectors = sketch_vectors(space, 0, proposed)
    niches = [(p.sketch_id, *vectors[p.sketch_id].niches(_row(vectors, p))) for p in proposed]
    assert len(set(niches[:8])) == 8


def _row(vectors: dict[str, DecisionVectors], program: Program) -> Integers:
    return vectors[program.sketch_id].encode([program])


def test_what_failed_is_not_proposed_again(bundle: Bundle, hardware: Hardware, task: Task) -> None:
    failed = [one.program for one in evolve(task, hardware, bundle, TaskHistory(), 8, 0)]
    others = evolve(task, hardware, bundle, known(failed, 8 * [None]), 8, 0)
    assert len(others) == 8
    ids = {program.program_id for program in failed}
    assert not ids & {one.program.program_id for one in others}
