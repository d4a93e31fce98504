"""Searches that are told in which direction to change programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from costlib.arrays import Floats, Integers
from costlib.data.dataset import Dataset
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.search.evolution import search
from costlib.sketch_pool import SketchPool
from costlib.space.design_space import DesignSpace
from costlib.space.directions import stock_probabilities
from costlib.space.vectors import sketch_vectors
from costlib.testing.surrogate import Surrogate
from costlib.workloads import Task, extract_tasks
from tools.benchmarks.oracle import OraclePool, TruthOracle, told, without_oracle


@pytest.fixture(scope="module")
def task(hardware: Hardware) -> Task:
    return extract_tasks("matmul 32 32 32", hardware)[0]


@pytest.fixture(scope="module")
def known(task: Task, hardware: Hardware) -> tuple[Any, ...]:
    space = DesignSpace(task)
    encoder = TaskEncoder.of_space(space, hardware)
    found = sketch_vectors(space, 0)
    sketch_id = max(found, key=lambda name: len(found[name].positions))
    return found[sketch_id], encoder.sketches[sketch_id], encoder.context


def changed_directions(pool: SketchPool, start: Integers, score: Any) -> list[str]:
    """Return the direction in which each child of one generation was changed."""
    rng = np.random.default_rng(0)
    vectors, _ = pool.evolve(start, 64, 1, 0, score, lambda _, a: stock_probabilities(a), rng)
    places = [np.flatnonzero(row != start[0]) for row in vectors]
    return [pool.vectors.directions[one[0]] for one in places if len(one) == 1]


def test_children_go_where_the_best_ones_are(known: tuple[Any, ...]) -> None:
    start = known[0].random(1, np.random.default_rng(1))
    unroll = known[0].directions.index("unroll")

    def values(pool: SketchPool, vectors: Integers) -> Floats:
        return (vectors[:, unroll] != start[0, unroll]).astype("float64")

    plain = changed_directions(SketchPool(*known), start, None)
    assert plain.count("unroll") < 0.3 * len(plain)
    named = OraclePool(*known, values=values)
    rng = np.random.default_rng(0)
    schedules = named.encode(start)
    named.evolve(start, 8, 1, 0, None, lambda _, a: stock_probabilities(a), rng)
    children = named._mutate(
        start, schedules, np.zeros(200, "int64"), lambda _, a: stock_probabilities(a), rng
    )
    assert 0.8 < (children[:, unroll] != start[0, unroll]).mean() < 1


def test_without_measurements_nothing_is_asked(known: tuple[Any, ...]) -> None:
    def values(pool: SketchPool, vectors: Integers) -> Floats:
        raise AssertionError("asked")

    pool = OraclePool(*known, values=values)
    rng = np.random.default_rng(0)
    nobody = np.zeros((0, len(known[0].positions)), "int64")
    vectors, _ = pool.evolve(nobody, 8, 1, 0, None, lambda _, a: stock_probabilities(a), rng)
    assert len(vectors) > 8


def test_the_truth_is_the_surrogates(
    measured_dataset: Dataset, hardware: Hardware, task: Task, known: tuple[Any, ...]
) -> None:
    surrogate = Surrogate.fitted([measured_dataset], hardware.hardware_id, [task.workload_id])
    device = surrogate.device()
    pool = SketchPool(*known)
    vectors = pool.vectors.random(12, np.random.default_rng(2))
    values = TruthOracle(device, task)(pool, vectors)
    programs = pool.vectors.decode(vectors)
    expected = [-np.log(device.truth_s.get(p.program_id, np.inf)) for p in programs]
    assert values.tolist() == expected
    assert np.isfinite(values).any()


def test_a_search_is_told_inside_the_context_alone() -> None:
    plain = vars(search)["SketchPool"]
    with told(None):
        assert vars(search)["SketchPool"].func is OraclePool
    assert vars(search)["SketchPool"] is plain


def test_the_same_search_without_an_oracle() -> None:
    assert without_oracle("cold,oracle=truth") == "cold"
    assert without_oracle("oracle=draft") == ""
    assert without_oracle("oracle=draft,niches=0") == "niches=0"
