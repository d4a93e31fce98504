"""A generator trained on a dataset's programs and on imagined ones, here or on a Dask cluster."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

from costlib.data.dataset import Dataset
from costlib.features.version import LANGUAGE_VERSION
from costlib.generator.language import VOCABULARY
from costlib.generator.model import Generator
from costlib.generator.sentences import write_down
from costlib.generator.transformer import GeneratorConfig
from costlib.models import process_group, training_curve
from costlib.models.base import CostModel
from costlib.training.batches import Chosen, Progress
from costlib.training.cluster import shares_of_workers
from costlib.training.ranks import together


def fit_generator(
    dataset: Dataset,
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    config: GeneratorConfig | None = None,
    start: Generator | None = None,
    teacher: CostModel | None = None,
    seed: int = 0,
    checkpoints: Path | None = None,
    on_progress: Progress = None,
) -> Generator:
    """Train a generator on a dataset's good programs and on others that nobody measured.

    Each program is told apart by its quality token.

    Parameters
    ----------
    dataset, only, hardware
        See :func:`costlib.generator.sentences.write_down`.
    config
        Its size and training; of ``start``, if that is given, the training alone.
    start
        A generator to go on from, which was trained before: on measured programs alone. It stays
        as it is.
    teacher
        A model of schedules: what it thinks good of the dataset's tasks and of invented ones is
        learnt from, beside random programs; without it only what was measured.
    seed
        Of weights and order.
    checkpoints
        A folder for what a training that is killed goes on from.
    on_progress
        Called with (done, total): tasks that are written down, then steps of the training.
    """
    config = config or GeneratorConfig()
    sentences = write_down(
        dataset,
        only=only,
        hardware=hardware,
        random_programs=config.random_programs,
        imagined_programs=config.imagined_programs,
        invented=config.invented_per_task,
        teacher=teacher if start is None else None,
        seed=seed + process_group.rank(),
        on_progress=on_progress,
    )
    model = deepcopy(start) if start else Generator(VOCABULARY, LANGUAGE_VERSION, config, seed)

    def note(step: int, steps: int, loss: float) -> None:
        training_curve.tell("generator/training loss", step, loss)
        if on_progress is not None:
            on_progress(step, steps)

    model.fit(
        sentences.tokens,
        sentences.chosen,
        seed=seed,
        epochs=config.epochs,
        checkpoint=checkpoints and checkpoints / "generator.safetensors",
        on_progress=note,
    )
    return model


def fit_generator_in_ranks(
    client: Any, dataset: Dataset, *, only: Chosen = None, hardware: Chosen = None, **settings: Any
) -> Generator:
    """Train a generator on all workers of a cluster, without checkpoints.

    See :func:`fit_generator` for the ``settings``.
    """
    shares = shares_of_workers(client, dataset, only, hardware)
    path = str(dataset.path.resolve())
    model: Generator = together(client, shares, _fit_share, path, settings | {"hardware": hardware})
    return model


def _fit_share(share: list[str], path: str, settings: dict[str, Any]) -> Generator:
    return fit_generator(Dataset.open(path), only=share, **settings)
