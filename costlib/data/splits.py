"""Which tasks a model is trained on and which it is judged on."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

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


def near_duplicates(workloads: pl.DataFrame, excluded: Iterable[str]) -> set[str]:
    """Find workloads that are held out, or nearly equal to one that is.

    Nearly equal means the same computation by name and the same argument shapes up to the batch,
    the first axis of the first argument and whatever equals it.

    Parameters
    ----------
    workloads
        Columns ``workload_id``, ``name`` and ``arguments`` of a dataset, held-out ones included.
    excluded
        Ids of the held-out workloads.

    Returns
    -------
    set of str
        Ids to leave out of training.
    """
    excluded = set(excluded)
    shapes = {
        row["workload_id"]: _shape_key(row["name"], row["arguments"])
        for row in workloads.iter_rows(named=True)
    }
    banned = {shapes[workload_id] for workload_id in excluded if workload_id in shapes}
    return {i for i, key in shapes.items() if i in excluded or key in banned}


def _shape_key(name: str, arguments: list[dict[str, object]]) -> tuple[object, ...]:
    shapes = [tuple(argument["shape"]) for argument in arguments]  # type: ignore[arg-type]
    batch = shapes[0][0] if shapes and shapes[0] else None
    without = [tuple(n for n in shape[:1] if n != batch) + tuple(shape[1:]) for shape in shapes]
    return (name, *without)
