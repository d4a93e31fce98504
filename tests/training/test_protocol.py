from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.features.batch import concatenate
from costlib.hub import Bundle
from costlib.hub.evaluate import evaluate
from costlib.training.batches import TrainingData, assemble
from costlib.training.fit import fit_model
from costlib.training.protocol import (
    evaluate_protocol,
    measured_networks,
    most_measured_hardware,
    network_weights,
)

LATENCIES = {"a": [1.0, 2.0, 4.0], "b": [10.0, 30.0], "c": [5.0, 5.0, 6.0, 9.0]}
WEIGHTS = {"one": {"a": 2, "b": 1}, "two": {"b": 3, "c": 1}}


def data(latencies: dict[str, list[float]] = LATENCIES) -> TrainingData:
    latency_s = np.concatenate([np.array(values) for values in latencies.values()])
    sizes = [len(values) for values in latencies.values()]
    best = np.repeat([min(values) for values in latencies.values()], sizes)
    stores = [np.zeros((1, 2), "float32")] * len(latency_s)
    return TrainingData(
        concatenate(stores, np.zeros((len(latency_s), 1), "float32")),
        latency_s,
        best / latency_s,
        np.repeat(np.arange(len(sizes)), sizes),
        [(workload_id, "cpu") for workload_id in latencies],
    )


def test_a_perfect_model() -> None:
    metrics = evaluate_protocol(data(), -data().latency_s, WEIGHTS)
    assert metrics.hardware == "cpu"
    for one in (metrics, metrics.pooled, *metrics.networks.values()):
        assert (one.top1, one.top5, one.top10, one.pairwise_accuracy) == (1, 1, 1, 1)
        assert one.rank_correlation == pytest.approx(1)
        assert one.random_top1 < 1


def test_figures_by_hand() -> None:
    scores = np.array([0, 1, 0, 1, 0, 0, 0, 0, 1], "float64")  # a's second, b's best, c's worst
    metrics = evaluate_protocol(data(), scores, WEIGHTS)
    one, two = metrics.networks["one"], metrics.networks["two"]
    assert one.top1 == pytest.approx((2 * 1 + 10) / (2 * 2 + 10))
    assert two.top1 == pytest.approx((3 * 10 + 5) / (3 * 10 + 9))
    assert metrics.top1 == pytest.approx((one.top1 + two.top1) / 2)
    assert metrics.pooled.top1 == pytest.approx((12 + 35) / (14 + 39))
    assert one.random_top1 == pytest.approx((2 * 1 + 10) / (2 * 7 / 3 + 20))
    assert one.top5 == two.top5 == 1
    assert (one.tasks, one.programs, metrics.tasks, metrics.programs) == (2, 5, 3, 9)


def test_a_network_with_a_task_that_was_not_measured_is_named() -> None:
    weights = {**WEIGHTS, "three": {"a": 1, "never measured": 1}}
    metrics = evaluate_protocol(data(), -data().latency_s, weights)
    assert metrics.networks.keys() == WEIGHTS.keys()
    assert metrics.not_judged == ("three",)


@pytest.mark.parametrize("weights", [{}, {"one": {"a": 1, "never measured": 1}}])
def test_no_network_was_measured(weights: dict[str, dict[str, int]]) -> None:
    with pytest.raises(DatasetError, match="no network all of whose tasks"):
        evaluate_protocol(data(), -data().latency_s, weights)


def test_one_hardware_at_a_time() -> None:
    both = data()
    both.tasks[1] = ("a", "another")
    with pytest.raises(DatasetError, match="one hardware"):
        evaluate_protocol(both, -both.latency_s, WEIGHTS)


def test_a_dataset_is_judged_network_by_network(measured_dataset: Dataset, bundle: Bundle) -> None:
    weights = network_weights(measured_dataset)
    assert set(weights) == {"matmul 32 32 32", "matmul 64 32 16", "softmax 32 32"}
    chosen = most_measured_hardware(measured_dataset)
    programs = assemble(measured_dataset, hardware=[chosen])
    metrics = evaluate_protocol(programs, bundle.model.predict(programs.batch), weights)
    assert metrics.hardware == chosen
    assert set(metrics.networks) == set(weights)
    assert 0 < metrics.top1 <= metrics.top5 <= metrics.top10 <= 1


def test_training_uses_all_tasks_where_networks_are_held_out(
    measured_dataset: Dataset, tmp_path: Path
) -> None:
    folder = shutil.copytree(measured_dataset.path, tmp_path / "ds")
    shutil.copytree(measured_dataset.path, folder / "heldout")  # Judged on what it was trained on.
    fitted = fit_model(Dataset.open(folder))
    assert len(fitted.trained) == len(fitted.held_out) == 3
    assert set(fitted.metrics.model_dump()) > {"networks", "pooled", "top10"}


def test_held_out_networks_that_nobody_measured_are_not_judged_on(
    measured_dataset: Dataset, bundle: Bundle, tmp_path: Path
) -> None:
    folder = shutil.copytree(measured_dataset.path, tmp_path / "ds")
    held_out = shutil.copytree(measured_dataset.path, folder / "heldout")
    shutil.rmtree(held_out / "measurements")
    dataset = Dataset.open(folder)
    assert measured_networks(dataset) is None
    fitted = fit_model(dataset)
    assert fitted.held_out
    assert not set(fitted.held_out) & set(fitted.trained)
    assert evaluate(bundle, dataset).tasks == len(bundle.manifest.trained_on.held_out)
