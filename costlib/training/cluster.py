"""Trains a GBDT on a Dask cluster: each worker holds a share of the tasks (LightGBM's own Dask).

A worker reads its tasks from the dataset itself, so its folder must be on a disk that all of
them see, at the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError
from costlib.features.build import build_features
from costlib.models.base import CostModel
from costlib.models.gbdt import GbdtModel
from costlib.training.batches import (
    Chosen,
    TrainingData,
    batches,
    chosen_hardware,
    concatenate,
    measured_rows,
    trained_columns,
)

_LOCAL = "local:"
_SECONDS_TO_ANSWER = 30


@dataclass(frozen=True)
class Share:
    """What a worker trains on: ``data``, made of so many programs of these workloads."""

    data: Any
    programs: int
    workloads: set[str]


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler for a while.

    Parameters
    ----------
    address
        ``tcp://host:port``, or ``local:N`` for `N` processes of this machine.

    Raises
    ------
    InputError
        It is neither, nobody answers there, or Dask is not installed.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError(
            "training on a cluster needs Dask: pip install 'costlib[cluster]'"
        ) from None
    if address.startswith(_LOCAL):
        count = address.removeprefix(_LOCAL)
        if not count.isdecimal() or not int(count):
            raise InputError(f"the cluster is '{address}'; give local:N with N processes")
        with (
            LocalCluster(int(count), threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=_SECONDS_TO_ANSWER)
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"no Dask scheduler answers at '{address}': {reason}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"the Dask scheduler at '{address}' has no workers; start some")
        yield client


def fit_on_cluster(
    client: Any,
    dataset: Dataset,
    model: GbdtModel,
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    seed: int = 0,
) -> tuple[int, set[str]]:
    """Train a model of trees on all workers of a cluster.

    Parameters
    ----------
    client
        Dask's, see :func:`connected`.
    dataset
        The dataset, on a disk that all workers see.
    model
        The model to be fitted.
    only, hardware
        Workload ids and hardware ids to train on; all if not given.
    seed
        As in :meth:`costlib.models.base.CostModel.fit`; the trees are not those of one process.

    Returns
    -------
    programs, workloads
        How many programs of which workloads it was trained on.

    Raises
    ------
    DatasetError
        There is nothing to train on.
    """
    import dask.array as da
    from dask import delayed
    from lightgbm import DaskLGBMRanker

    held, programs, workloads = spread(client, dataset, model, only, hardware, _ranking_data)
    shapes = client.gather([client.submit(_shapes, share) for share in held.values()])

    def column(number: int, dtype: str) -> Any:
        """Join an array of the shares; a chunk stays with its worker."""
        return da.concatenate(
            [
                da.from_delayed(delayed(_array)(share, number), shape[number], dtype=dtype)
                for share, shape in zip(held.values(), shapes, strict=True)
            ]
        )

    parameters = model.parameters(seed) | {"force_row_wise": True}
    ranker = DaskLGBMRanker(
        client=client, n_estimators=model.config.num_trees, **_for_scikit_learn(parameters)
    )
    ranker.fit(column(0, "float32"), column(1, "int32"), group=column(2, "int64"))
    model.adopt(ranker.booster_, trained_columns(dataset, model.view, hardware))
    return programs, workloads


def _ranking_data(model: GbdtModel, data: TrainingData) -> tuple[Any, ...]:
    """Return pooled features, their relevance, and the sizes of what is ranked together."""
    return tuple(map(np.asarray, model.ranking_data(data.batch, data.labels, data.groups)))


def _array(share: Share, number: int) -> Any:
    return share.data[number]


def _shapes(share: Share) -> list[tuple[int, ...]]:
    return [array.shape for array in share.data]


def spread(
    client: Any,
    dataset: Dataset,
    model: CostModel,
    only: Chosen,
    hardware: Chosen,
    prepare: Callable[[Any, TrainingData], Any],
) -> tuple[dict[str, Any], int, set[str]]:
    """Let each worker load its share of the tasks, and ``prepare`` it for a model.

    Features that are missing are computed here, before.

    Returns
    -------
    shares, programs, workloads
        Futures of :class:`Share` by the worker's address, and how many programs of which workloads
        they hold; a worker whose tasks have no two programs to rank holds none.

    Raises
    ------
    DatasetError
        There is nothing to train on.
    """
    if model.view == "statements":
        for hardware_id in chosen_hardware(dataset, hardware):
            build_features(dataset, hardware_id, only=only)
    path = str(dataset.path.resolve())
    held = {
        worker: client.submit(
            _load, path, tasks, hardware, model, prepare, workers=[worker], pure=False
        )
        for worker, tasks in shares_of_workers(client, dataset, only, hardware).items()
    }
    contents = client.gather({w: client.submit(_content, share) for w, share in held.items()})
    held = {worker: share for worker, share in held.items() if contents[worker]}
    if not held:
        raise DatasetError(f"{dataset.path} holds no task with two measured programs to rank")
    programs, workloads = zip(*(contents[worker] for worker in held), strict=True)
    return held, sum(programs), set().union(*workloads)


def shares_of_workers(
    client: Any, dataset: Dataset, only: Chosen, hardware: Chosen
) -> dict[str, list[str]]:
    """Return the ids of each worker's tasks, by its address."""
    workers = sorted(client.scheduler_info()["workers"])
    return dict(zip(workers, divided(dataset, only, hardware, len(workers)), strict=False))


def divided(dataset: Dataset, only: Chosen, hardware: Chosen, count: int) -> list[list[str]]:
    """Return the ids of each worker's tasks, all with about as many programs.

    There are fewer shares than workers if there are fewer tasks.
    """
    rows = measured_rows(dataset, hardware, only)
    counted = rows.group_by("workload_id").agg(programs=pl.len())
    shares: list[list[str]] = [[] for _ in range(count)]
    held = [0] * count
    order = counted.sort(["programs", "workload_id"], descending=[True, False]).collect()
    for workload_id, programs in order.iter_rows():
        least = held.index(min(held))
        shares[least].append(workload_id)
        held[least] += programs
    return [share for share in shares if share]


def _load(path: str, only: list[str], hardware: Chosen, model: Any, prepare: Any) -> Share | None:
    parts = list(batches(Dataset.open(path), only=only, hardware=hardware, view=model.view))
    data = concatenate(parts) if parts else None
    if data is None or np.bincount(data.groups).max() < 2:
        return None
    workloads = {workload_id for workload_id, _ in data.tasks}
    return Share(prepare(model, data), len(data.labels), workloads)


def _content(share: Share | None) -> tuple[int, set[str]] | None:
    return None if share is None else (share.programs, share.workloads)


def _for_scikit_learn(parameters: dict[str, Any]) -> dict[str, Any]:
    """Name LightGBM's parameters as its scikit-learn classes do."""
    names = {
        "seed": "random_state",
        "min_data_in_leaf": "min_child_samples",
        "feature_fraction": "colsample_bytree",
    }
    return {names.get(name, name): value for name, value in parameters.items()}
