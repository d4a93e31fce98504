from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from costlib.collecting.doubts import doubts_of, most_doubted
from costlib.collecting.plan import Mix
from costlib.collecting.proposals import Proposer
from costlib.collecting.task_state import TaskState
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.space.design_space import DesignSpace
from costlib.workloads import Task


def test_those_that_one_model_thinks_good_and_the_other_bad_come_first() -> None:
    one = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    other = np.array([0.0, 9.0, 8.0, 7.0, 1.0, 2.0])
    doubts = doubts_of(one, other)
    assert doubts.argmax() == 0
    assert doubts[5] > doubts[4] == 0, "they agree about the latter"
    assert doubts[5] < doubts[0], "neither thinks it good"
    np.testing.assert_array_equal(doubts_of(other, one), doubts)
    np.testing.assert_array_equal(doubts_of(10 * one - 3, other), doubts)


@pytest.fixture
def candidates(matmul: Task) -> list[Candidate]:
    drawn = islice(DesignSpace(matmul).sample(0), 24)
    return [Candidate(program, schedule) for program, schedule in drawn if schedule is not None]


def test_lowered_programs_are_put_in_order(
    bundle: Bundle, hardware: Hardware, matmul: Task, candidates: list[Candidate]
) -> None:
    space = DesignSpace(matmul)
    ordered = most_doubted(candidates, space, hardware, bundle)
    assert sorted(map(id, ordered)) == sorted(map(id, candidates))
    assert ordered != candidates
    assert most_doubted(candidates, space, hardware, replace(bundle, draft=None)) == candidates
    assert most_doubted([], space, hardware, bundle) == []


def test_a_share_of_each_batch_is_doubted(bundle: Bundle, matmul: Task) -> None:
    def drawn(uncertain: float) -> list[str]:
        mix = Mix(mutated=0, uncertain=uncertain)
        draws = Proposer(mix, Hardware.local(), bundle).draw(TaskState(matmul), 8)
        assert {one.origin for one in draws} == {Origin.RANDOM}
        return [one.candidate.program.program_id for one in draws]

    plain, doubted = drawn(0), drawn(0.5)
    assert len(set(doubted)) == 8
    assert len(set(plain) - set(doubted)) >= 1
    assert drawn(0.5) == doubted
