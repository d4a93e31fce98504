"""A generator trained on a dataset's programs and on imagined ones."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import deepcopy
from pathlib import Path

from costlib.data.dataset import Dataset
from costlib.features.version import LANGUAGE_VERSION
from costlib.generator.language import VOCABULARY
from costlib.generator.model import Generator
from costlib.generator.sentences import write_down
from costlib.generator.transformer import GeneratorConfig
from costlib.models import process_group, training_curve
from costlib.models.base import CostModel


def fit_generator(
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    config: GeneratorConfig | None = None,
    start: Generator | None = None,
    teacher: CostModel | None = None,
    seed: int = 0,
    checkpoints: Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
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
