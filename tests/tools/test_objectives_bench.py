"""The comparison of ways to teach trees judges by the rule that it states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costlib.arrays import Floats, Integers
from costlib.features.batch import FeatureBatch, select
from costlib.features.columns import CONTEXT
from costlib.models.gbdt import GbdtConfig, GbdtModel
from costlib.testing.cost_models import made_up_programs
from costlib.training.batches import TrainingData
from tools.benchmarks import learners, objectives
from tools.benchmarks.contiguous import contiguous_columns
from tools.benchmarks.learners import BUNDLES, LEARNERS, SECOND_LOOKS, SHIPPED, Learner, Objective
from tools.benchmarks.objectives import Trials

SIZES = np.array([2, 5, 3])


def pair_loss(labels: Floats, scores: Floats) -> float:
    lead = labels[:, None] - labels[None, :]
    margin = np.sign(lead) * (scores[:, None] - scores[None, :])
    losses = np.abs(lead) * np.log1p(np.exp(-margin))
    return float(losses.sum() / 2 / np.abs(lead).sum() * len(labels))


def softmax_loss(labels: Floats, scores: Floats) -> float:
    wanted = labels**4 / (labels**4).sum()
    return float(-wanted @ (scores - np.log(np.exp(scores).sum())))


@pytest.mark.parametrize(
    ("objective", "loss"),
    [
        (learners.regret_pairs, pair_loss),
        (learners.softmax, softmax_loss),
        (learners.pairs_and_softmax, lambda *task: pair_loss(*task) + 10 * softmax_loss(*task)),
    ],
)
def test_gradients_are_those_of_the_loss(objective: Objective, loss) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    labels, scores = rng.uniform(0.1, 1, SIZES.sum()), rng.normal(size=SIZES.sum())

    def total(scores: Floats) -> float:
        cuts = np.cumsum(SIZES)[:-1]
        tasks = zip(np.split(labels, cuts), np.split(scores, cuts), strict=True)
        return sum(loss(*task) for task in tasks)

    pull, bend = objective(labels, SIZES)(scores)
    steps = np.eye(len(scores)) * 1e-5
    expected = [(total(scores + step) - total(scores - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(pull, expected, atol=1e-6)
    assert (bend > 0).all()


def in_order(programs: int, tasks: int) -> tuple[FeatureBatch, Floats, Integers]:
    batch, labels, groups = made_up_programs(programs, tasks, seed=0)
    order = np.argsort(groups, kind="stable")
    return select(batch, order), labels[order], groups[order]


def test_what_is_shipped_has_the_default_settings() -> None:
    assert LEARNERS[SHIPPED].config == GbdtConfig()
    assert {name for members in BUNDLES.values() for name in members} <= LEARNERS.keys()
    assert {name for look in SECOND_LOOKS for name in look[:2]} <= LEARNERS.keys()


def test_a_learner_without_changes_is_the_model() -> None:
    batch, labels, groups = in_order(200, 5)
    config = GbdtConfig(num_trees=20)
    model = GbdtModel(config)
    model.fit(batch, labels, groups, seed=3)
    booster = Learner(config).fit(batch.pooled(), labels, groups, 3)
    np.testing.assert_allclose(booster.predict(batch.pooled()), model.predict(batch), atol=1e-6)


@pytest.fixture
def trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trials:
    few = {name: Learner(GbdtConfig(num_trees=10)) for name in (SHIPPED, "half the trees")}
    monkeypatch.setattr(objectives, "LEARNERS", few)
    batch, labels, groups = in_order(240, 8)
    tasks = [(f"{number}", "here") for number in range(8)]
    return Trials(TrainingData(batch, 1 / labels, labels, groups, tasks), tmp_path)


def test_nothing_is_trained_twice(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    trials.train(SHIPPED, 4)
    scores = trials.scores(4, (SHIPPED,))

    def fit(*_: object) -> None:
        raise AssertionError("it was trained before")

    monkeypatch.setattr(Learner, "fit", fit)
    trials.train(SHIPPED, 4)
    np.testing.assert_array_equal(trials.scores(4, (SHIPPED,)), scores)
    assert trials.seeds(SHIPPED) == {4}
    with pytest.raises(AssertionError, match="before"):
        trials.train(SHIPPED, 5)


def test_a_second_look_reorders_the_best_alone(trials: Trials) -> None:
    for name in (SHIPPED, "half the trees"):
        trials.train(name, 0)
    first = trials.scores(0, (SHIPPED,))
    scores = trials.looked_at_twice(0, (SHIPPED, "half the trees", 3))
    for task in trials._tasks:
        old, new = (np.argsort(-values[task], kind="stable") for values in (first, scores))
        assert set(old[:3]) == set(new[:3])
        np.testing.assert_array_equal(old[3:], new[3:])


def test_the_error_is_that_of_paired_differences() -> None:
    rng = np.random.default_rng(0)
    differences: Floats = rng.normal(0.1, 0.2, size=(2, 900, 3))
    folds: Integers = np.tile(np.arange(900) % 3, (2, 1))
    found = objectives._gains(differences, folds)
    assert found["gain_of_top1"] == pytest.approx(differences[..., 0].mean(), abs=1e-4)
    assert found["top1_error"] >= 0.2 / np.sqrt(2 * 900) * 0.9
    assert objectives._gains(differences * 0, folds)["top1_error"] == 0


@pytest.mark.parametrize(
    ("changed", "passes"),
    [
        ({}, True),
        ({"gain_of_top1": 0.003}, False),
        ({"gain_of_top5": -0.003}, False),
        ({"gain_of_pairwise_accuracy": -0.001}, True),
        ({"training": 2.1}, False),
        ({"trees": 1.6}, False),
        ({"gain_of_top1": 0.0, "top1_error": 0.0}, False),
    ],
)
def test_the_rule(changed: dict[str, float], passes: bool) -> None:
    row = {f"gain_of_{name}": 0.01 for name in objectives.FIGURES}
    row |= {f"{name}_error": 0.002 for name in objectives.FIGURES}
    assert objectives._passes(row | {"training": 1.0, "trees": 1.0} | changed) is passes


def test_contiguous_loops_are_found_behind_others() -> None:
    rng = np.random.default_rng(0)
    names = CONTEXT["statements"]
    context = np.zeros((2, len(names)), "float32")
    at = {name: number for number, name in enumerate(names)}
    for depth, (extent, jump) in enumerate([(3, 64), (8, 1)], 1):
        context[0, at[f"loop{depth}.extent"]] = np.log2(1 + extent)
        context[0, at[f"loop{depth}.store_jump"]] = np.log2(1 + jump)
        context[0, at[f"loop{depth}.loads_standing"]] = 1
    context[0, at["unroll_steps"]] = np.log2(1 + 16)
    batch = FeatureBatch(rng.random((2, 4)).astype("float32"), np.arange(3), context, names)
    found = contiguous_columns(batch)
    assert found.shape == (2, 14)
    assert found[:, 0].tolist() == [1, 5], "the second loop from within; none"
    assert found[0, 1] == pytest.approx(np.log2(9))
    assert found[0, 2] == pytest.approx(np.log2(3)), "what lies inside it"
    assert found[0, 3] < 0 < found[0, 4], "16 steps are enough for what is inside, not for all"
