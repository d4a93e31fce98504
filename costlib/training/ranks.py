"""Trains what torch trains on a Dask cluster: a ``torch.distributed`` process on each worker.

Every worker trains on its share of the tasks; after each step the gradients are averaged over all
of them. Dask starts the processes, hands out the shares and brings the model back.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from costlib.data.dataset import Dataset
from costlib.models.base import CostModel
from costlib.models.baselines.neural import NeuralModel
from costlib.training.batches import Chosen, TrainingData
from costlib.training.cluster import Share, spread

_PATIENCE = timedelta(minutes=10)
"""How long a process waits for the others before it gives up."""


def fit_in_ranks(
    client: Any,
    dataset: Dataset,
    model: NeuralModel[Any],
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    seed: int = 0,
) -> tuple[NeuralModel[Any], int, set[str]]:
    """Train a neural model on all workers of a cluster.

    As :func:`costlib.training.cluster.fit_on_cluster`, but the fitted model is another one, and
    returned as well: ``model`` says what is trained, and how.
    """
    held, programs, workloads = spread(client, dataset, model, only, hardware, _unprepared)
    return together(client, held, _fit, model, seed), programs, workloads


def _unprepared(_: CostModel, data: TrainingData) -> TrainingData:
    return data


def _fit(share: Share, model: NeuralModel[Any], seed: int) -> NeuralModel[Any]:
    data = share.data
    model.fit(data.batch, data.labels, data.groups, seed=seed)
    return model


def together(
    client: Any, shares: Mapping[str, Any], train: Callable[..., Any], *arguments: Any
) -> Any:
    """Let workers call ``train(share, *arguments)`` at once; return what the first has made."""
    (first, *_) = shares
    port = client.submit(_free_port, workers=[first], pure=False).result()
    meeting = f"tcp://{urlsplit(first).hostname}:{port}"
    size = len(shares)
    futures = [
        client.submit(
            _rank, meeting, rank, size, train, share, *arguments, workers=[worker], pure=False
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
