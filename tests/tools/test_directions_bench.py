"""Parents near the best and their children, really measured."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurement import Candidate
from costlib.measure.measurer import Measurer
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat.api import structural_key
from costlib.workloads import Task
from tools.benchmarks.directions import (
    NEAR,
    SEARCHED,
    Parent,
    children_of,
    measured,
    parents_of,
)
from tools.evidence.families import NATIVE
from tools.evidence.files import ZOO


@pytest.fixture(scope="module")
def parent(matmul: Task) -> Candidate:
    drawn = DesignSpace(matmul).sample(seed=3)
    return next(Candidate(p, s) for p, s in drawn if s is not None and len(p.decisions) > 3)


def test_parents_are_near_the_best_of_tasks_that_are_not_held_out() -> None:
    zoo = Dataset.open(ZOO)
    held_out = zoo.held_out()
    assert held_out is not None
    hidden = set(held_out.scan("workloads").select("workload_id").collect()["workload_id"])
    found = list(itertools.islice(parents_of(zoo, SEARCHED, 0), 100))
    assert all(1 <= one.recorded <= NEAR for one in found)
    tasks = [one.program.workload_id for one in found]
    assert len(set(tasks)) == len(tasks) == 100  # Each has one before any has another.
    assert not hidden & set(tasks)
    assert found == list(itertools.islice(parents_of(zoo, SEARCHED, 0), 100))


def test_children_are_valid_and_distinct_as_code(matmul: Task, parent: Candidate) -> None:
    rng = np.random.default_rng(0)
    found = children_of(DesignSpace(matmul), parent, 3, rng)
    codes = [structural_key(one.schedule.mod) for _, _, one in found if one.schedule is not None]
    assert len(set(codes)) == len(codes) == len(found)
    assert parent.schedule is not None and structural_key(parent.schedule.mod) not in codes
    counts = Counter(change.direction for change, _, _ in found)
    assert max(counts.values()) == 3
    assert len(counts) > 3


def test_a_family_is_measured(matmul: Task, hardware: Hardware, parent: Candidate) -> None:
    rng = np.random.default_rng(0)
    reference = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
    config = MeasureConfig(repeats=1, repeat_secs=0.001)
    with Measurer(hardware, config, reference) as measurer:
        one = Parent(parent.program, 1.1)
        family = measured(measurer, NATIVE, hardware, matmul, one, 1, rng)
    assert family is not None
    assert family.recorded == 1.1
    assert family.parent_s > 0
    assert len({child.direction for child in family.children}) == len(family.children) > 3
    assert sum(child.chance for child in family.children) == pytest.approx(1)
    assert any(child.latency_s for child in family.children)
