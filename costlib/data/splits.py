"""Which tasks a model is trained on and which it is judged on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import UnknownNameError
from costlib.identity import content_id
from costlib.schema import PARTITIONED


def held_out_tasks(workload_ids: Iterable[str], share: float, seed: int = 0) -> set[str]:
    """Choose about a share of whole tasks to judge a model on: at least one of two or more.

    Whether a task is chosen depends on its id and the seed alone: it stays on its side when
    the dataset grows.
    """
    ranked = sorted(set(workload_ids), key=lambda workload_id: content_id(seed, workload_id))
    count = max(round(share * len(ranked)), 1 if len(ranked) > 1 and share > 0 else 0)
    return set(ranked[:count])


class WorkloadKey(NamedTuple):
    """A workload's id, and what nearly equal workloads have in common.

    Two workloads are nearly equal if they compute the same by name, on arguments of the same
    shapes up to the batch: the first extent of the first argument, wherever it comes first.
    """

    workload_id: str
    name: str
    shapes: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, workload_id: str, name: str, shapes: Iterable[Sequence[int]]) -> WorkloadKey:
        """Make the key of a workload from the shapes of its arguments, results last."""
        listed = [tuple(shape) for shape in shapes]
        batch = listed[0][:1] if listed else ()
        without = [shape[1:] if shape[:1] == batch else shape for shape in listed]
        return cls(workload_id, name, tuple(without))

    @property
    def likeness(self) -> str:
        """The same for nearly equal workloads, and for no others."""
        return content_id(self.name, self.shapes)


def workload_keys(workloads: pl.LazyFrame) -> list[WorkloadKey]:
    """Return the keys of rows of :data:`costlib.schema.WORKLOADS`."""
    rows = workloads.select("workload_id", "name", "arguments").collect()
    return [
        WorkloadKey.of(workload_id, name, [argument["shape"] for argument in arguments])
        for workload_id, name, arguments in rows.iter_rows()
    ]


def overlapping(candidates: Iterable[WorkloadKey], excluded: Iterable[WorkloadKey]) -> set[str]:
    """Return the ids of candidates that equal, or nearly equal, one not to be trained on."""
    excluded = list(excluded)
    ids = {key.workload_id for key in excluded}
    likes = {key[1:] for key in excluded}
    return {k.workload_id for k in candidates if k.workload_id in ids or k[1:] in likes}


def dealt(keys: Iterable[WorkloadKey], count: int, seed: int = 0) -> dict[str, int]:
    """Deal workloads into so many folds of about the same size, nearly equal ones into the same.

    Returns
    -------
    dict
        The fold of each workload, from 0, by its id; fewer folds if there is not enough.
    """
    alike: dict[str, list[str]] = {}
    for key in keys:
        alike.setdefault(content_id(seed, key.name, key.shapes), []).append(key.workload_id)
    return {
        workload_id: number % count
        for number, (_, ids) in enumerate(sorted(alike.items()))
        for workload_id in ids
    }


class Side(NamedTuple):
    """The records of some tasks on some hardwares."""

    workload_ids: frozenset[str]
    hardware_ids: frozenset[str]


class Split(NamedTuple):
    """What a model is trained on and what it is judged on; no task, nor one nearly equal, is both.

    Attributes
    ----------
    train, test
        The two sides.
    removed
        How many further tasks are on neither, because they nearly equal one of ``test``.
    """

    train: Side
    test: Side
    removed: int


def split_by_task(dataset: Dataset, share: float, seed: int = 0) -> Split:
    """Judge on some of the measured tasks, on all hardwares; see :func:`held_out_tasks`."""
    measured = _measured(dataset, dataset.hardware())
    return _split(dataset, measured, held_out_tasks(measured, share, seed))


def split_by_network(dataset: Dataset, networks: Iterable[str]) -> Split:
    """Judge on the measured tasks of some networks, on all hardwares.

    Raises
    ------
    UnknownNameError
        The dataset's table of networks lacks one of them.
    """
    table = dataset.scan("networks").select("network", "workload_id").collect()
    called: set[str] = set()
    for network in networks:
        calls = table.filter(pl.col("network") == network)
        if calls.is_empty():
            raise UnknownNameError("network", network, set(table["network"]))
        called.update(calls["workload_id"])
    measured = _measured(dataset, dataset.hardware())
    return _split(dataset, measured, called & measured)


def split_by_hardware(
    dataset: Dataset, hardware_ids: Iterable[str], share: float, seed: int = 0
) -> Split:
    """Judge on some of the tasks measured on hardwares that training does without.

    Both the hardwares and the tasks of the test are new to the model.

    Parameters
    ----------
    hardware_ids
        The hardwares to judge on.
    share, seed
        See :func:`held_out_tasks`; applied to the tasks measured there.

    Raises
    ------
    UnknownNameError
        The dataset has no such hardware.
    """
    known = dataset.hardware().keys()
    judged = set(hardware_ids)
    for hardware_id in judged - known:
        raise UnknownNameError("hardware", hardware_id, known)
    test = held_out_tasks(_measured(dataset, judged), share, seed)
    return _split(dataset, _measured(dataset, known - judged), test, judged)


def leaked(dataset: Dataset, held_out: Dataset) -> set[str]:
    """Return the workloads with records in ``dataset`` that equal, or nearly equal, a held-out one.

    Those that ``dataset`` only lists, because one of its networks calls them, are no leak.
    """
    recorded = pl.concat(dataset.scan(table).select("workload_id") for table in PARTITIONED)
    trained_on = dataset.scan("workloads").join(recorded.unique(), on="workload_id", how="semi")
    return overlapping(workload_keys(trained_on), workload_keys(held_out.scan("workloads")))


def _measured(dataset: Dataset, hardware_ids: Iterable[str]) -> set[str]:
    rows = dataset.scan().filter(pl.col("hardware").is_in(list(hardware_ids)))
    return set(rows.select(pl.col("workload_id").unique()).collect()["workload_id"])


def _split(
    dataset: Dataset, candidates: set[str], test: set[str], judged: set[str] | None = None
) -> Split:
    """Judge on some hardwares and train on the others, or both on all."""
    known = frozenset(dataset.hardware())
    keys = {key.workload_id: key for key in workload_keys(dataset.scan("workloads"))}
    excluded = overlapping([keys[i] for i in candidates], [keys[i] for i in test])
    return Split(
        Side(frozenset(candidates - excluded), known - (judged or set())),
        Side(frozenset(test), known if judged is None else frozenset(judged)),
        len(excluded - test),
    )
