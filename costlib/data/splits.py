"""Which tasks a model is trained on and which it is judged on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from costlib.identity import content_id


def held_out_tasks(workload_ids: Iterable[str], share: float, seed: int = 0) -> set[str]:
    """Choose whole tasks to judge a model on.

    Whether a task is chosen depends on its id and the seed alone: it stays on its side when
    the dataset grows.

    Parameters
    ----------
    workload_ids
        The tasks of the dataset.
    share
        About this share of them is chosen, and at least one if there are two or more.
    seed
        Another seed gives another choice.
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


def overlapping(candidates: Iterable[WorkloadKey], excluded: Iterable[WorkloadKey]) -> set[str]:
    """Find the workloads that equal, or nearly equal, one that must not be trained on.

    Returns
    -------
    set of str
        Ids of those among ``candidates``.
    """
    excluded = list(excluded)
    ids = {key.workload_id for key in excluded}
    likes = {key[1:] for key in excluded}
    return {k.workload_id for k in candidates if k.workload_id in ids or k[1:] in likes}
