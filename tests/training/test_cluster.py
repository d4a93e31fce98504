from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from costlib.cli.app import run as run_command
from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.generator.fit import fit_generator, fit_generator_in_ranks
from costlib.generator.model import Generator
from costlib.generator.sentences import write_down
from costlib.generator.transformer import GeneratorConfig
from costlib.hub import load_pretrained
from costlib.models.base import CostModel
from costlib.models.baselines.mlp import MlpConfig, MlpModel
from costlib.models.baselines.neural import NeuralConfig, NeuralModel, measure_columns
from costlib.models.baselines.sequence import SequenceConfig, SequenceModel
from costlib.models.gbdt import GbdtConfig, GbdtModel
from costlib.training import cluster
from costlib.training.batches import TrainingData, assemble
from costlib.training.cluster import connected, fit_on_cluster
from costlib.training.fit import fit_model
from costlib.training.metrics import evaluate_scores
from costlib.training.ranks import fit_in_ranks


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    with connected("local:2") as client:
        yield client


def _pairwise_accuracy(model: CostModel, data: TrainingData) -> float:
    return evaluate_scores(model.predict(data.batch), data.latency_s, data.groups).pairwise_accuracy


def test_as_good_as_one_process(two_workers: Any, dataset: Dataset) -> None:
    together, alone = (GbdtModel(GbdtConfig(num_trees=100)) for _ in range(2))
    programs, tasks = fit_on_cluster(two_workers, dataset, together)
    data = assemble(dataset)
    alone.fit(data.batch, data.labels, data.groups)
    assert programs == len(data.labels)
    assert tasks == {workload_id for workload_id, _ in data.tasks}
    accuracy = [_pairwise_accuracy(model, data) for model in (together, alone)]
    assert min(accuracy) > 0.65, "0.5 is chance"
    assert accuracy[0] > accuracy[1] - 0.15


def test_both_workers_hold_a_share(dataset: Dataset) -> None:
    shares = cluster.divided(dataset, None, None, 2)
    assert len(shares) == 2 and not set(shares[0]) & set(shares[1])
    every = set(dataset.scan().collect()["workload_id"])
    assert set(shares[0]) | set(shares[1]) == every
    chosen = sorted(every)[:1]
    assert cluster.divided(dataset, chosen, None, 2) == [chosen]


@pytest.mark.parametrize(
    ("kind", "config"),
    [(MlpModel, MlpConfig(epochs=20)), (SequenceModel, SequenceConfig(epochs=20))],
)
def test_a_neural_model_is_as_good_as_one_process(
    kind: type[NeuralModel], config: NeuralConfig, two_workers: Any, dataset: Dataset
) -> None:
    alone = kind(config)
    together, programs, tasks = fit_in_ranks(two_workers, dataset, kind(config))
    data = assemble(dataset, view=alone.view)
    alone.fit(data.batch, data.labels, data.groups)
    assert programs == len(data.labels)
    assert tasks == {workload_id for workload_id, _ in data.tasks}
    accuracy = [_pairwise_accuracy(model, data) for model in (together, alone)]
    assert min(accuracy) > 0.55, "0.5 is chance"
    assert accuracy[0] > accuracy[1] - 0.1


def test_both_workers_count(two_workers: Any, dataset: Dataset) -> None:
    """The columns' means are those of all tasks, not of one worker's."""
    model, _, _ = fit_in_ranks(two_workers, dataset, MlpModel(MlpConfig(epochs=1)))
    everything = measure_columns(assemble(dataset).batch)
    for name, values in everything.items():
        np.testing.assert_allclose(model._weights[name], values, rtol=1e-3, atol=1e-5)


def test_a_generator_learns_on_both_workers(two_workers: Any, dataset: Dataset) -> None:
    config = GeneratorConfig(width=32, layers=1, epochs=20, batch=4, learning_rate=3e-3)
    together = fit_generator_in_ranks(two_workers, dataset, config=config)
    alone = fit_generator(dataset, config=config.model_copy(update={"batch": 8}))
    new = Generator(alone.vocabulary, alone.language, config)
    sentences = write_down(dataset)
    losses = [
        model.losses(sentences.tokens, sentences.chosen).mean() for model in (together, alone, new)
    ]
    assert losses[0] < 0.7 * losses[2]
    assert abs(losses[0] - losses[1]) < 0.25 * losses[1]


def test_a_model_of_another_kind(two_workers: Any, dataset: Dataset) -> None:
    with pytest.raises(InputError, match="'gbdt-statements' cannot be trained on a cluster"):
        fit_model(dataset, kind="gbdt-statements", cluster=two_workers)


@pytest.mark.parametrize("address", ["local:0", "local:many", "tcp://127.0.0.1:1", "nowhere"])
def test_no_such_cluster(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_SECONDS_TO_ANSWER", 1)
    with pytest.raises(InputError, match=address), connected(address):
        pass


def test_the_command(
    two_workers: Any, dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = two_workers.scheduler.address
    copy = shutil.copytree(dataset.path, tmp_path / "data")
    arguments = ["train", str(copy), "--out", str(tmp_path / "bundle"), "--cluster", address]
    monkeypatch.setattr("sys.argv", ["costlib", *arguments, "--held-out", "0.3"])
    assert run_command() == 0
    bundle = load_pretrained(tmp_path / "bundle")
    assert f"--cluster {address}" in bundle.manifest.command
    assert bundle.draft is not None
