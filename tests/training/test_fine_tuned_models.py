from __future__ import annotations

import numpy as np
import pytest

from costlib.arrays import Floats
from costlib.features.batch import FeatureBatch
from costlib.models.gbdt import GbdtConfig, GbdtModel
from costlib.testing.cost_models import made_up_programs
from costlib.training.batches import TrainingData
from costlib.training.fine_tuning import FINE_TUNED, PRETRAINED, fine_tune_model, is_better
from costlib.training.metrics import evaluate_scores

TASKS = 10


def measured(labels: Floats, batch: FeatureBatch) -> TrainingData:
    """Programs of tasks by their quality."""
    groups = np.arange(len(labels)) % TASKS
    latency_s = 1e-3 / labels
    best = np.array([latency_s[groups == task].min() for task in range(TASKS)])
    tasks = [(f"task{task}", "here") for task in range(TASKS)]
    return TrainingData(batch, latency_s, best[groups] / latency_s, groups, tasks)


@pytest.fixture(scope="module")
def model() -> GbdtModel:
    made = GbdtModel(GbdtConfig(num_trees=60))
    made.fit(*made_up_programs(600, 6, seed=0))
    return made


@pytest.fixture(scope="module")
def other_machine() -> TrainingData:
    """What was fast is slow."""
    batch, labels, _ = made_up_programs(200, TASKS, seed=3)
    return measured(np.clip(1 - labels, 0.01, 1), batch)


FOLDS = {f"task{task}": task % 5 for task in range(TASKS)}
APART = {"task2", "task5", "task9"}


@pytest.mark.parametrize("apart", [None, APART])
def test_what_is_learnt_holds_for_tasks_kept_apart(
    model: GbdtModel, other_machine: TrainingData, apart: set[str] | None
) -> None:
    found = fine_tune_model(model, other_machine, FOLDS, apart)
    comparison = found.comparison
    assert comparison.kept == FINE_TUNED
    assert comparison.after == comparison.fine_tuned
    assert comparison.after.tasks == (TASKS if apart is None else len(APART))
    assert comparison.after.top1 > comparison.before.top1 + 0.1
    judged = found.judged
    assert comparison.after == evaluate_scores(found.scores, judged.latency_s, judged.groups)
    assert (found.model.predict(judged.batch) == found.scores).all() == (apart is not None)


def test_tasks_kept_apart_teach_nothing(model: GbdtModel, other_machine: TrainingData) -> None:
    """Whatever their latencies are, the same is learnt."""
    apart = np.array([name in APART for name, _ in other_machine.tasks])[other_machine.groups]
    latency_s = np.where(apart, other_machine.latency_s[::-1], other_machine.latency_s)
    labels = np.where(apart, other_machine.labels[::-1], other_machine.labels)
    changed = TrainingData(
        other_machine.batch, latency_s, labels, other_machine.groups, other_machine.tasks
    )
    one, other = (fine_tune_model(model, data, FOLDS, APART) for data in (other_machine, changed))
    assert one.comparison.way == other.comparison.way
    batch = other_machine.batch
    learnt = model if other.comparison.kept == PRETRAINED else one.model
    np.testing.assert_array_equal(other.model.predict(batch), learnt.predict(batch))


@pytest.mark.parametrize("apart", [None, APART])
@pytest.mark.parametrize("seed", range(2))
def test_the_better_one_is_kept(model: GbdtModel, seed: int, apart: set[str] | None) -> None:
    """Noise teaches nothing; whatever is kept puts no fewer pairs in order."""
    batch, labels, _ = made_up_programs(100, TASKS, seed=seed)
    noise = np.random.default_rng(seed).uniform(0.1, 1, len(labels))
    found = fine_tune_model(model, measured(noise, batch), FOLDS, apart, seed=seed).comparison
    assert found.after == (found.fine_tuned if found.kept == FINE_TUNED else found.before)
    assert found.after.pairwise_accuracy >= found.before.pairwise_accuracy


def test_a_model_that_knows_the_machine_stays(model: GbdtModel) -> None:
    batch, _, _ = made_up_programs(100, TASKS, seed=3)
    scores = model.predict(batch)
    places = (np.argsort(np.argsort(scores)) + 1) / len(scores)
    found = fine_tune_model(model, measured(places, batch), FOLDS, APART)
    assert found.comparison.kept == PRETRAINED
    assert found.comparison.way is None
    assert found.model is model


def test_one_task_teaches_nothing_that_could_be_judged(
    model: GbdtModel, other_machine: TrainingData
) -> None:
    apart = {f"task{task}" for task in range(1, TASKS)}
    found = fine_tune_model(model, other_machine, FOLDS, apart)
    assert found.comparison.kept == PRETRAINED


def test_better_puts_more_pairs_in_order_and_loses_nothing_beyond_chance() -> None:
    batch, _, _ = made_up_programs(8 * TASKS, TASKS, seed=0)
    places = np.arange(8 * TASKS) // TASKS + 1
    data = measured(1 / places, batch)
    in_order = -1.0 * places
    best_first = np.where(places == 1, 9.0, places)  # And the others upside down.
    best_last = np.where(places == 1, -9.0, in_order)
    best_last_once = np.where(data.groups == 0, best_last, in_order)
    assert is_better(in_order, best_last_once, data)
    assert not is_better(best_last_once, in_order, data)
    assert not is_better(in_order, in_order, data)
    assert is_better(best_last_once, best_first, data), "one task in ten is chance"
    assert not is_better(best_last, best_first, data)
