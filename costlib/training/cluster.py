"""Trains a GBDT on a Dask cluster: each worker holds a share of the tasks (LightGBM's own Dask).

A worker reads its tasks from the dataset itself, so its folder must be on a disk that all of
them see, at the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from costlib.arrays import Float32s, Integers
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError
from costlib.features.build import build_features
from costlib.models.base import CostModel
from costlib.models.gbdt import GbdtModel, ranked_together
from costlib.training.assemble import assemble
from costlib.training.batches import chosen_hardware

_LOCAL = "local:"
_SECONDS_TO_ANSWER = 30


@dataclass(frozen=True)
class _Share:
    """What a worker trains on: pooled features, relevance, sizes of the tasks, and their ids."""

    columns: Float32s
    relevance: np.ndarray[Any, np.dtype[np.int32]]
    sizes: Integers
    tasks: list[str]


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
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
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

    held = list(spread(client, dataset, model, only, hardware, _load).values())
    shapes = client.gather([client.submit(_shape, share) for share in held])
    filled = [(share, shape) for share, shape in zip(held, shapes, strict=True) if shape[0]]
    if not filled:
        raise DatasetError(f"{dataset.path} holds no measured program of the tasks asked for")

    def column(name: str, dtype: str) -> Any:
        """Join an attribute of the shares; a chunk stays with its worker."""
        return da.concatenate(
            [
                da.from_delayed(delayed(getattr)(share, name), shape, dtype=dtype)
                for share, shape in ((share, _shape_of(name, sizes)) for share, sizes in filled)
            ]
        )

    parameters = model.parameters(seed) | {"force_row_wise": True}
    ranker = DaskLGBMRanker(
        client=client, n_estimators=model.config.num_trees, **_for_scikit_learn(parameters)
    )
    ranker.fit(
        column("columns", "float32"), column("relevance", "int32"), group=column("sizes", "int64")
    )
    model.adopt(ranker.booster_)
    tasks = client.gather([client.submit(getattr, share, "tasks") for share, _ in filled])
    return sum(shape[0] for _, shape in filled), {one for part in tasks for one in part}


def spread(
    client: Any,
    dataset: Dataset,
    model: CostModel,
    only: Collection[str] | None,
    hardware: Collection[str] | None,
    load: Callable[..., Any],
) -> dict[str, Any]:
    """Let each worker load its share of the tasks; return what it holds, by the worker's address.

    Features that are missing are computed here, before. ``load`` is given the dataset's folder, the
    share's workload ids, ``hardware`` and the model.
    """
    if model.view == "statements":
        for hardware_id in chosen_hardware(dataset, hardware):
            build_features(dataset, hardware_id)
    workers = sorted(client.scheduler_info()["workers"])
    shares = divided(dataset, only, hardware, len(workers))
    path = str(dataset.path.resolve())
    return {
        worker: client.submit(load, path, tasks, hardware, model, workers=[worker], pure=False)
        for worker, tasks in zip(workers, shares, strict=False)
    }


def divided(
    dataset: Dataset, only: Collection[str] | None, hardware: Collection[str] | None, count: int
) -> list[list[str]]:
    """Return the ids of each worker's tasks, all with about as many programs.

    There are fewer shares than workers if there are fewer tasks.
    """
    rows = dataset.scan().filter(pl.col("hardware").is_in(list(chosen_hardware(dataset, hardware))))
    if only is not None:
        rows = rows.filter(pl.col("workload_id").is_in(list(only)))
    counted = rows.group_by("workload_id").agg(programs=pl.len())
    shares: list[list[str]] = [[] for _ in range(count)]
    held = [0] * count
    order = counted.sort(["programs", "workload_id"], descending=[True, False]).collect()
    for workload_id, programs in order.iter_rows():
        least = held.index(min(held))
        shares[least].append(workload_id)
        held[least] += programs
    return [share for share in shares if share]


def _load(path: str, only: list[str], hardware: Collection[str] | None, model: GbdtModel) -> _Share:
    data = assemble(Dataset.open(path), only=only, hardware=hardware, view=model.view)
    order = np.argsort(data.groups, kind="stable")
    sizes = np.unique(data.groups, return_counts=True)[1]
    return _Share(
        data.batch.pooled()[order],
        model.relevance(data.labels[order]),
        np.array(ranked_together(sizes)),
        [workload_id for workload_id, _ in data.tasks],
    )


def _shape(share: _Share) -> tuple[int, int, int]:
    """Return the numbers of programs, columns and groups."""
    return (*share.columns.shape, len(share.sizes))


def _shape_of(name: str, shape: tuple[int, int, int]) -> tuple[int, ...]:
    programs, columns, groups = shape
    return {"columns": (programs, columns), "relevance": (programs,), "sizes": (groups,)}[name]


def _for_scikit_learn(parameters: dict[str, Any]) -> dict[str, Any]:
    """Name LightGBM's parameters as its scikit-learn classes do."""
    names = {
        "seed": "random_state",
        "min_data_in_leaf": "min_child_samples",
        "feature_fraction": "colsample_bytree",
    }
    return {names.get(name, name): value for name, value in parameters.items()}
