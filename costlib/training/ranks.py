"""Trains what torch trains on a Dask cluster: a ``torch.distributed`` process on each worker.

Every worker trains on its share of the tasks; after each step the gradients are averaged over all
of them. Dask starts the processes, hands out the shares and brings the model back.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.models.base import CostModel
from costlib.models.baselines.neural import NeuralModel
from costlib.training.assemble import TrainingData, assemble
from costlib.training.cluster import spread

_PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others before it gives up."""


def fit_in_ranks(
    client: Any,
    dataset: Dataset,
    model: NeuralModel[Any],
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    seed: int = 0,
) -> tuple[NeuralModel[Any], int, set[str]]:
    """Train a neural model on all workers of a cluster.

    Parameters
    ----------
    client
        Dask's, see :func:`costlib.training.cluster.connected`.
    dataset
        The dataset, on a disk that all workers see.
    model
        Says what is trained, and how.
    only, hardware
        Workload ids and hardware ids to train on; all if not given.
    seed
        As in :meth:`costlib.models.base.CostModel.fit`; the batches are not those of one process.

    Returns
    -------
    model, programs, workloads
        The fitted model, and how many programs of which workloads it was trained on.

    Raises
    ------
    DatasetError
        There is nothing to train on.
    """
    held = spread(client, dataset, model, only, hardware, _load)
    sizes = client.gather({w: client.submit(_size, share) for w, share in held.items()})
    ranks = [worker for worker in held if sizes[worker]]
    if not ranks:
        raise DatasetError(f"{dataset.path} holds no task with two measured programs to rank")
    fitted = together(client, {worker: held[worker] for worker in ranks}, _fit, model, seed)
    tasks = client.gather([client.submit(_tasks, held[worker]) for worker in ranks])
    programs = sum(sizes[worker] for worker in ranks)
    return fitted, programs, {workload_id for part in tasks for workload_id in part}


def _load(
    path: str, only: list[str], hardware: Collection[str] | None, model: CostModel
) -> TrainingData | None:
    try:
        return assemble(Dataset.open(path), only=only, hardware=hardware, view=model.view)
    except DatasetError:
        return None


def _size(share: TrainingData | None) -> int:
    """Return the number of programs, 0 if there are no two to rank."""
    if share is None or np.unique(share.groups, return_counts=True)[1].max() < 2:
        return 0
    return len(share.labels)


def _tasks(share: TrainingData) -> list[str]:
    return [workload_id for workload_id, _ in share.tasks]


def _fit(share: TrainingData, model: NeuralModel[Any], seed: int) -> NeuralModel[Any]:
    model.fit(share.batch, share.labels, share.groups, seed=seed)
    return model


def together(
    client: Any, shares: Mapping[str, Any], train: Callable[..., Any], *arguments: Any
) -> Any:
    """Let workers call ``train(share, *arguments)`` at once; return what the first has made."""
    (first, *_) = shares
    port = client.submit(_free_port, workers=[first], pure=False).result()
    meeting = f"tcp://{urlsplit(first).hostname}:{port}"
    futures = [
        client.submit(
            _rank,
            meeting,
            rank,
            len(shares),
            train,
            share,
            *arguments,
            workers=[worker],
            pure=False,
        )
        for rank, (worker, share) in enumerate(shares.items())
    ]
    return client.gather(futures)[0]


def _rank(meeting: str, rank: int, size: int, train: Callable[..., Any], *arguments: Any) -> Any:
    """Train together with the other ranks; the first returns the model."""
    import torch
    import torch.distributed as group
    from distributed import get_worker

    torch.set_num_threads(get_worker().state.nthreads)
    group.init_process_group(
        "gloo", init_method=meeting, rank=rank, world_size=size, timeout=_PATIENCE
    )
    try:
        model = train(*arguments)
    finally:
        group.destroy_process_group()
    return None if rank else model


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])
