"""A generator trained on a Dask cluster, by a process of ``torch.distributed`` on each worker."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from costlib.data.dataset import Dataset
from costlib.generator.fit import fit_generator
from costlib.generator.model import Generator
from costlib.generator.transformer import GeneratorConfig
from costlib.models.base import CostModel
from costlib.training.cluster import divided
from costlib.training.ranks import together


def fit_generator_in_ranks(
    client: Any,
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    config: GeneratorConfig,
    start: Generator | None = None,
    teacher: CostModel | None = None,
    seed: int = 0,
) -> Generator:
    """Train a generator on all workers of a cluster.

    See :func:`costlib.training.ranks.fit_in_ranks` and
    :func:`costlib.generator.fit.fit_generator`; there are no checkpoints.
    """
    workers = sorted(client.scheduler_info()["workers"])
    shares = divided(dataset, only, hardware, len(workers))
    path = str(dataset.path.resolve())
    model: Generator = together(
        client,
        dict(zip(workers, shares, strict=False)),
        _fit_generator,
        path,
        hardware,
        config,
        start,
        teacher,
        seed,
    )
    return model


def _fit_generator(
    share: list[str],
    path: str,
    hardware: Collection[str] | None,
    config: GeneratorConfig,
    start: Generator | None,
    teacher: CostModel | None,
    seed: int,
) -> Generator:
    return fit_generator(
        Dataset.open(path),
        only=share,
        hardware=hardware,
        config=config,
        start=start,
        teacher=teacher,
        seed=seed,
    )
