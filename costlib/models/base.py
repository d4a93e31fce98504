"""What every cost model can do."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import TypeAdapter
from safetensors import SafetensorError

from costlib.arrays import Floats, Integers
from costlib.errors import BundleError, InputError
from costlib.features.batch import FeatureBatch
from costlib.features.columns import ORIGINAL, columns_of
from costlib.files import first_line

View = Literal["statements", "schedule"]

COLUMNS = "columns.json"
"""The file beside a model that names its columns; older models have none."""

_names = TypeAdapter(tuple[str, ...])


class CostModel(ABC):
    """Scores programs: the higher, the faster. Floats compare within one task only.

    Attributes
    ----------
    kind
        The model's name, see :func:`costlib.models.model_class`.
    view
        What it sees of a program: the ``"statements"`` of its lowered form
        (:mod:`costlib.features.lowered`), or its ``"schedule"``
        (:mod:`costlib.features.schedule`), whose tokens take the place of stores.
    """

    kind: ClassVar[str]
    view: ClassVar[View] = "statements"

    @abstractmethod
    def fit(self, batch: FeatureBatch, labels: Floats, groups: Integers, *, seed: int = 0) -> None:
        """Train from scratch.

        Parameters
        ----------
        batch
            `n` programs.
        labels
            float64 `n`: best latency of the task divided by the program's, in (0, 1].
        groups
            int64 `n`: which task on which hardware; programs of a group are ranked.
        seed
            Two fits with the same data and seed give the same model.

        Raises
        ------
        InputError
            No group has two programs, or a label is not in (0, 1].
        """

    @abstractmethod
    def predict(self, batch: FeatureBatch) -> Floats:
        """Score programs; float64 `n`."""

    def stages(self, batch: FeatureBatch) -> Iterator[tuple[int, Floats]]:
        """Yield how it would score had its training ended earlier: (steps, float64 `n`).

        In the order of steps, the last being :meth:`predict`'s; nothing where that is not known.
        """
        del batch
        return iter(())

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the model to files in an existing folder: text, JSON or safetensors only."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Read what :meth:`save` wrote; scores are the same to the bit."""


def check_training_data(batch: FeatureBatch, labels: Floats, groups: Integers) -> None:
    """Raise :class:`InputError` unless a model can be trained on this."""
    if not len(batch) == len(labels) == len(groups):
        raise InputError(
            f"{len(batch)} programs, {len(labels)} labels and {len(groups)} groups do not match"
        )
    if not np.all((labels > 0) & (labels <= 1)):
        raise InputError("labels must be best latency / latency, in (0, 1]; found NaN or others")
    if len(groups) == 0 or np.max(np.unique(groups, return_counts=True)[1]) < 2:
        raise InputError("no task has two measured programs, so there is nothing to rank")


def centred(values: Floats, groups: Integers) -> Floats:
    """Subtract from each of `n` values the mean of its group."""
    numbers = np.unique(groups, return_inverse=True)[1]
    means = np.bincount(numbers, values) / np.bincount(numbers)
    return np.asarray(values - means[numbers])


@contextmanager
def reading(folder: Path, what: str) -> Iterator[None]:
    """Raise :class:`BundleError` where the body cannot read a folder: it holds no ``what``."""
    try:
        yield
    except BundleError:
        raise
    except (OSError, ValueError, LookupError, TypeError, ArithmeticError, RuntimeError,
            SafetensorError) as error:  # fmt: skip
        raise BundleError(f"{folder} holds no {what}: {first_line(error)}") from None


def save_columns(folder: Path, names: tuple[str, ...]) -> None:
    """Note in a model's folder which columns of context it was trained with."""
    (folder / COLUMNS).write_text(json.dumps(names, indent=0) + "\n")


def load_columns(folder: Path, view: View) -> tuple[str, ...]:
    """Read what :func:`save_columns` wrote; the original columns where nothing is noted.

    Raises
    ------
    BundleError
        This costlib computes no such column.
    OSError, ValueError
        The note cannot be read.
    """
    file = folder / COLUMNS
    if not file.exists():
        return ORIGINAL[view]
    names = _names.validate_json(file.read_bytes())
    if unknown := [name for name in names if name not in columns_of(view, "cuda")]:
        raise BundleError(
            f"{folder} was trained with a column {unknown[0]!r}, which this costlib does not "
            "compute; update costlib"
        )
    return names
