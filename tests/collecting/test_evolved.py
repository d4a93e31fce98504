from __future__ import annotations

from itertools import islice

import pytest

from costlib.arrays import Integers
from costlib.collecting.evolved import BundleSearch, load_search
from costlib.collecting.proposals import Known
from costlib.errors import UnknownNameError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors, sketch_vectors
from costlib.workloads import Task, extract_tasks


@pytest.fixture(scope="module")
def task(hardware: Hardware) -> Task:
    return extract_tasks("matmul 64 96 128", hardware)[0]


def test_a_search_goes_on_from_what_is_known(
    bundle: Bundle, hardware: Hardware, task: Task
) -> None:
    search = BundleSearch(bundle, hardware)
    drawn = {p.program_id: p for p, _ in islice(DesignSpace(task).sample(0), 24)}
    rising = [Known(program, 1e-3 * (1 + n)) for n, program in enumerate(drawn.values())]
    falling = [Known(program, 1e-3 * (24 - n)) for n, program in enumerate(drawn.values())]
    proposed = []
    for known in (rising, rising, falling):
        ids = [one.program.program_id for one in search(task, known, 8, seed=0)]
        assert len(set(ids)) == 8
        assert not set(ids) & set(drawn)
        proposed.append(ids)
    assert proposed[0] == proposed[1]
    assert set(proposed[0]) != set(proposed[2]), "it learns from latencies"


def test_half_are_of_niches_apart(bundle: Bundle, hardware: Hardware) -> None:
    (conv,) = extract_tasks("conv2d 1 16 14 14 32 3 pad=1", hardware)
    space = DesignSpace(conv)
    drawn = islice(space.sample(0), 24)
    improving = [Known(program, 1e-3 / (1 + n)) for n, (program, _) in enumerate(drawn)]
    proposed = [one.program for one in BundleSearch(bundle, hardware)(conv, improving, 16, seed=0)]
    vectors = sketch_vectors(space, 0, proposed)
    niches = [(p.sketch_id, *vectors[p.sketch_id].niches(_row(vectors, p))) for p in proposed]
    assert len(set(niches[:8])) == 8


def _row(vectors: dict[str, DecisionVectors], program: Program) -> Integers:
    return vectors[program.sketch_id].encode([program])


def test_what_failed_is_not_proposed_again(bundle: Bundle, hardware: Hardware, task: Task) -> None:
    search = load_search(str(bundle.path), hardware)
    failed = [Known(one.program, None) for one in search(task, [], 8, seed=0)]
    others = search(task, failed, 8, seed=0)
    assert len(others) == 8
    ids = {one.program.program_id for one in failed}
    assert not ids & {one.program.program_id for one in others}


def test_an_unknown_bundle_is_refused(hardware: Hardware) -> None:
    with pytest.raises(UnknownNameError, match="nowhere"):
        load_search("nowhere", hardware)
