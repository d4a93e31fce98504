"""What a bundle is fine-tuned on, and what is kept apart to judge it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.splits import dealt, split_by_task, workload_keys
from costlib.errors import DatasetError, InputError
from costlib.models.base import View
from costlib.schema import Status
from costlib.training.batches import (
    Chosen,
    Progress,
    TrainingData,
    assemble,
    chosen_hardware,
    concatenate,
    measured_rows,
)
from costlib.training.fine_tuning import FOLDS

_SHARE_APART = 0.2
_MANY_TASKS = 60
"""From so many tasks on, a share is kept apart; with fewer, all are judged in turn."""


@dataclass(frozen=True)
class Sides:
    """Tasks to learn from, and tasks to judge on.

    Attributes
    ----------
    dataset, hardware
        Where they are, and the ids of the hardware.
    learnt
        Ids of the workloads to learn from.
    apart
        Ids of those to judge on; if ``None``, those that are learnt from, in turn.
    held_out
        The dataset of the latter, if it is another one.
    folds
        See :func:`costlib.data.splits.dealt`.
    """

    dataset: Dataset
    hardware: Chosen
    learnt: frozenset[str]
    apart: frozenset[str] | None
    held_out: Dataset | None
    folds: Mapping[str, int]

    def read(self, view: View, on_progress: Progress = None) -> TrainingData:
        """Return the programs of both sides, as a model of this view sees them."""
        if self.held_out is None:
            tasks = self.learnt | (self.apart or frozenset())
            sources = [(self.dataset, tasks, self.hardware)]
        else:
            known = _shared_hardware(self.dataset, self.held_out, self.hardware)
            sources = [
                (self.dataset, self.learnt, self.hardware),
                (self.held_out, self.apart or frozenset(), known),
            ]
        return concatenate(
            assemble(one, only=only, hardware=hardware, view=view, on_progress=on_progress)
            for one, only, hardware in sources
        )


def sides_of(
    dataset: Dataset,
    hardware: Chosen = None,
    share: float | None = None,
    apart: Chosen = None,
    seed: int = 0,
) -> Sides:
    """Divide a dataset's measured tasks.

    Parameters
    ----------
    dataset, hardware
        The dataset, and ids of its hardware; all if not given.
    share
        Of the tasks to keep apart; near duplicates of them are not learnt from either. If not
        given: the held-out tasks, if there are some on the hardware; else a fifth of many tasks;
        few are judged in turn.
    apart
        Ids of the workloads to keep apart, instead.
    seed
        Decides which.

    Raises
    ------
    InputError
        The share is not between 0 and 1.
    DatasetError
        There are fewer than two tasks.
    """
    if share is not None and not 0 < share < 1:
        raise InputError(f"held_out_share is {share}; it must lie between 0 and 1")
    learnt = _measured(dataset, hardware)
    judged, held_out = None, None
    if apart is not None:
        judged = learnt & set(apart)
        learnt -= judged
    elif share is None and (known := _held_out_hardware(dataset, hardware)):
        held_out = dataset.held_out()
        assert held_out is not None
        judged = _measured(held_out, known)
    elif share is not None or len(learnt) >= _MANY_TASKS:
        split = split_by_task(dataset, share or _SHARE_APART, seed)
        learnt, judged = learnt & split.train.workload_ids, learnt & split.test.workload_ids
    if len(learnt) < (2 if judged is None else 1) or (judged is not None and not judged):
        raise DatasetError(
            f"{dataset.path} has too few measured tasks: {len(learnt)} to learn from and "
            f"{len(judged or ())} kept apart; fine-tuning needs at least two, one to learn from "
            "and one to be judged on"
        )
    keys = [key for key in workload_keys(dataset.scan("workloads")) if key.workload_id in learnt]
    return Sides(dataset, hardware, learnt, judged, held_out, dealt(keys, FOLDS, seed))


def _measured(dataset: Dataset, hardware: Chosen) -> frozenset[str]:
    ran = measured_rows(dataset, hardware).filter(pl.col("status") == str(Status.OK))
    return frozenset(ran.select("workload_id").unique().collect()["workload_id"])


def _held_out_hardware(dataset: Dataset, hardware: Chosen) -> set[str]:
    """Return which of the chosen hardware the held-out tasks were measured on."""
    held_out = dataset.held_out()
    return set() if held_out is None else _shared_hardware(dataset, held_out, hardware)


def _shared_hardware(dataset: Dataset, held_out: Dataset, hardware: Chosen) -> set[str]:
    measured = held_out.scan().select("hardware").unique().collect()["hardware"]
    return set(measured) & set(chosen_hardware(dataset, hardware))
