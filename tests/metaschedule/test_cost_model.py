from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.metaschedule import PretrainedCostModel
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import ms
from costlib.workloads import Task


@pytest.fixture
def model(bundle: Bundle, hardware: Hardware) -> PretrainedCostModel:
    return PretrainedCostModel(bundle, hardware)


@pytest.fixture(scope="module")
def space(matmul: Task) -> DesignSpace:
    return DesignSpace(matmul)


@pytest.fixture(scope="module")
def candidates(space: DesignSpace) -> list[object]:
    schedules = (schedule for _, schedule in space.sample(0) if schedule is not None)
    return [ms.MeasureCandidate(s, []) for s in itertools.islice(schedules, 40)]


def test_scores_are_weights(
    model: PretrainedCostModel, space: DesignSpace, candidates: list[object]
) -> None:
    scores = model.predict(space.context, candidates)
    assert scores.shape == (len(candidates),)
    assert ((scores > 0) & (scores < 1)).all()
    assert len(np.unique(scores)) > 1


def test_learns_from_what_is_measured(
    model: PretrainedCostModel, space: DesignSpace, candidates: list[object], tmp_path: Path
) -> None:
    before = model.predict(space.context, candidates)
    # Claim the opposite of what the model believes; the last one failed.
    results = [ms.runner.RunnerResult([1e-3 * (0.1 + score)], None) for score in before[:-1]]
    results.append(ms.runner.RunnerResult(None, "failed"))
    model.update(space.context, candidates, results)
    after = model.predict(space.context, candidates)
    assert not np.allclose(before, after)

    model.save(str(tmp_path / "state.npz"))
    model.load(str(tmp_path / "state.npz"))
    np.testing.assert_allclose(model.predict(space.context, candidates), after)


def test_only_failures_change_nothing(
    model: PretrainedCostModel, space: DesignSpace, candidates: list[object]
) -> None:
    before = model.predict(space.context, candidates)
    failed = [ms.runner.RunnerResult(None, "failed") for _ in candidates]
    model.update(space.context, candidates, failed)
    np.testing.assert_array_equal(model.predict(space.context, candidates), before)


@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_state_that_is_none(model: PretrainedCostModel, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "state.npz").write_bytes(content)
    # TVM turns what crosses its boundary into a RuntimeError and keeps the message.
    with pytest.raises(RuntimeError, match="no saved cost model state"):
        model.load(str(tmp_path / "state.npz"))
