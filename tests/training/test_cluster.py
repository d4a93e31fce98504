from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from costlib.cli.app import run as run_command
from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.hub import load_pretrained
from costlib.models.gbdt import GbdtModel
from costlib.training import cluster
from costlib.training.assemble import assemble
from costlib.training.cluster import connected, fit_on_cluster
from costlib.training.fit import fit_model


@pytest.fixture(scope="module")
def two_workers() -> Iterator[Any]:
    with connected("local:2") as client:
        yield client


def test_as_good_as_one_process(two_workers: Any, dataset: Dataset) -> None:
    together, alone = GbdtModel(), GbdtModel()
    programs, tasks = fit_on_cluster(two_workers, dataset, together)
    data = assemble(dataset)
    alone.fit(data.batch, data.labels, data.groups)
    assert programs == len(data.labels)
    assert tasks == {workload_id for workload_id, _ in data.tasks}
    scores = [model.predict(data.batch) for model in (together, alone)]
    for group in np.unique(data.groups):
        rows = data.groups == group
        if rows.sum() > 5:
            both = [spearmanr(one[rows], data.labels[rows])[0] for one in scores]
            assert both[0] > both[1] - 0.2


def test_both_workers_hold_a_share(dataset: Dataset) -> None:
    shares = cluster._divided(dataset, None, None, 2)
    assert len(shares) == 2 and not set(shares[0]) & set(shares[1])
    every = set(dataset.scan().collect()["workload_id"])
    assert set(shares[0]) | set(shares[1]) == every
    chosen = sorted(every)[:1]
    assert cluster._divided(dataset, chosen, None, 2) == [chosen]


def test_a_model_of_another_kind(two_workers: Any, dataset: Dataset) -> None:
    with pytest.raises(InputError, match="'mlp' cannot be trained on a cluster"):
        fit_model(dataset, kind="mlp", cluster=two_workers)


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
