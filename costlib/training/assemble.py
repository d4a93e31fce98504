"""A dataset that fits in memory as arrays: features, labels and groups."""

from __future__ import annotations

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.models.base import View
from costlib.training.batches import Chosen, Progress, TrainingData, batches, concatenate

__all__ = ["TrainingData", "assemble"]


def assemble(
    dataset: Dataset,
    *,
    only: Chosen = None,
    hardware: Chosen = None,
    view: View = "statements",
    on_progress: Progress = None,
) -> TrainingData:
    """Bring the programs that ran, and that this TVM can replay, into arrays.

    For the parameters see :func:`costlib.training.batches.batches`.

    Raises
    ------
    DatasetError
        There is no such program.
    """
    parts = list(batches(dataset, only=only, hardware=hardware, view=view, on_progress=on_progress))
    if not parts:
        raise DatasetError(
            f"{dataset.path} holds no measured program of the tasks asked for; "
            "see `costlib dataset info`"
        )
    return concatenate(parts)
