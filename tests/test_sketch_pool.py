from __future__ import annotations

import numpy as np
import pytest

from costlib.features.batch import FeatureBatch
from costlib.features.columns import ORIGINAL
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.sketch_pool import SketchPool
from costlib.space.design_space import DesignSpace
from costlib.space.directions import stock_probabilities
from costlib.space.vectors import sketch_vectors
from costlib.workloads import extract_tasks


@pytest.fixture(scope="module")
def pool(hardware: Hardware) -> SketchPool:
    task = extract_tasks("conv2d 1 16 14 14 32 3 pad=1", hardware)[0]
    space = DesignSpace(task)
    (sketch_id, vectors), *_ = sketch_vectors(space, 0).items()
    encoder = TaskEncoder.of_space(space, hardware)
    return SketchPool(vectors, encoder.sketches[sketch_id], encoder.context)


def anything(batch: FeatureBatch) -> np.ndarray:
    """Score by features that mean nothing, always alike."""
    features = batch.known_by(ORIGINAL["schedule"]).pooled()
    return np.asarray(features @ np.random.default_rng(0).standard_normal(features.shape[1]))


@pytest.mark.parametrize("niches", [False, True])
def test_the_best_evolve(pool: SketchPool, niches: bool) -> None:
    rng = np.random.default_rng(0)
    start = pool.vectors.random(8, rng)
    vectors, scores = pool.evolve(
        start, 64, 4, 0.2, anything, lambda _, a: stock_probabilities(a), rng, niches
    )
    assert scores.max() == scores[0] > anything(pool.encode(start)).max()
    np.testing.assert_allclose(anything(pool.encode(vectors)), scores)


def test_niches_keep_other_kinds_of_programs(pool: SketchPool) -> None:
    start = pool.vectors.random(8, np.random.default_rng(0))
    kinds = []
    for niches in (False, True):
        rng = np.random.default_rng(1)
        vectors, _ = pool.evolve(
            start, 64, 4, 0.2, anything, lambda _, a: stock_probabilities(a), rng, niches
        )
        kinds.append(len(np.unique(pool.vectors.niches(vectors))))
    assert kinds[1] > 1.5 * kinds[0]
