"""A model fine-tuned on new data and compared with what it was, on tasks kept apart.

How it is taught is chosen by cross-validation over the tasks that it learns from; what it is
judged on has no part in that. Unless the fine-tuned model is better on the tasks kept apart, the
one that it started from is kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from costlib.arrays import Bools, Floats, Integers
from costlib.features.batch import select
from costlib.frozen import FrozenStrict
from costlib.models.base import CostModel
from costlib.models.fine_tuning import FineTuning
from costlib.training.batches import TrainingData
from costlib.training.metrics import JudgedTasks, Metrics, evaluate_scores, pairwise_accuracy

FOLDS = 5
"""In how many parts tasks are judged in turn where they are few, and ways are compared."""

_TOP = 1, 5

PRETRAINED, FINE_TUNED = "pretrained", "fine-tuned"
"""Which of two models was kept."""


class Comparison(FrozenStrict):
    """A model before and after it was fine-tuned, on tasks that it did not learn from.

    Attributes
    ----------
    kept
        ``"fine-tuned"``, or ``"pretrained"`` if the former is no better, see :func:`is_better`.
    way
        How it was fine-tuned, as cross-validation over the tasks to learn from has chosen it;
        ``None`` if no way gained anything there.
    before, fine_tuned, after
        The figures of the model it started from, of the fine-tuned one (``None`` without a way),
        and of the one that was kept.
    """

    kept: str
    way: str | None
    before: Metrics
    fine_tuned: Metrics | None
    after: Metrics


@dataclass(frozen=True)
class FineTuned:
    """The model that was kept, how it compares, and its scores of what it was judged on.

    Attributes
    ----------
    judged
        The programs of the tasks that were kept apart.
    scores
        float64 `n`: of each, by the kept model, or by one of its folds that had not seen the task.
    """

    model: CostModel
    comparison: Comparison
    judged: TrainingData
    scores: Floats


def fine_tune_model(
    model: CostModel,
    data: TrainingData,
    folds: Mapping[str, int],
    apart: Collection[str] | None = None,
    *,
    seed: int = 0,
) -> FineTuned:
    """Teach a model new data and keep the better of the two.

    Parameters
    ----------
    model
        What to start from; it stays as it is.
    data
        What was measured.
    folds
        The fold of each workload, see :func:`costlib.data.splits.dealt`; more than one.
    apart
        Workloads to judge on, which are not learnt from. If ``None``, all are judged, those of
        each fold by a model that learnt from the others, and all are learnt from in the end.
    seed
        Of the trees.
    """
    number = np.array([folds.get(workload_id, 0) for workload_id, _ in data.tasks])[data.groups]
    if apart is None:
        learnt, judged = data, data
        way = chosen_way(model, learnt, number, seed)
        scores = _out_of_fold(model, data, number, seed)
    else:
        is_apart = np.array([w in apart for w, _ in data.tasks])[data.groups]
        learnt, judged = data.rows(~is_apart), data.rows(is_apart)
        way = chosen_way(model, learnt, number[~is_apart], seed)
    tuned = None if way is None else _teaching(model, learnt, seed).model(way)
    if apart is not None and tuned is not None:
        scores = tuned.predict(judged.batch)
    original = model.predict(judged.batch)
    before = evaluate_scores(original, judged.latency_s, judged.groups)
    if tuned is None:
        comparison = Comparison(
            kept=PRETRAINED, way=None, before=before, fine_tuned=None, after=before
        )
        return FineTuned(model, comparison, judged, original)
    after = evaluate_scores(scores, judged.latency_s, judged.groups)
    better = is_better(scores, original, judged)
    comparison = Comparison(
        kept=FINE_TUNED if better else PRETRAINED,
        way=way,
        before=before,
        fine_tuned=after,
        after=after if better else before,
    )
    kept, of_kept = (tuned, scores) if better else (model, original)
    return FineTuned(kept, comparison, judged, of_kept)


def chosen_way(model: CostModel, data: TrainingData, folds: Integers, seed: int) -> str | None:
    """Return the way to fine-tune that ranks tasks best that were not learnt from.

    Parameters
    ----------
    model, data, seed
        As in :func:`fine_tune_model`.
    folds
        Of each program, int64 `n`; all of a task are in one.

    Returns
    -------
    One of those of :class:`costlib.models.fine_tuning.FineTuning`, or ``None`` if none puts more
    pairs of programs in order. The first of a ranking, though it is what counts, is up to chance
    with few tasks.
    """
    original = model.predict(data.batch)
    scores: dict[str, Floats] = {}
    for held, learnt in _splits(data, folds):
        teaching = _teaching(model, data.rows(learnt), seed)
        for way, found in teaching.predict(select(data.batch, held)).items():
            scores.setdefault(way, original.copy())[held] = found
    quality = {way: _pairs_in_order(found, data) for way, found in scores.items()}
    best = max(quality, key=quality.__getitem__, default=None)
    return best if best is not None and quality[best] > _pairs_in_order(original, data) else None


def is_better(one: Floats, other: Floats, data: TrainingData) -> bool:
    """Whether scores put more pairs in order than others and lose no top-1 or top-5 beyond chance.

    Top-1 and top-5 of some dozens of tasks are up to chance, pairs are much less. A loss counts if
    its mean over the tasks is more than two standard errors.

    Parameters
    ----------
    one, other
        float64 `n`.
    data
        The `n` programs that they are of.
    """
    ours, theirs = (JudgedTasks(scores, data.latency_s, data.groups) for scores in (one, other))
    more = np.nanmean(ours.each(pairwise_accuracy)) > np.nanmean(theirs.each(pairwise_accuracy))
    losses = (theirs.best / theirs.ranked(k) - ours.best / ours.ranked(k) for k in _TOP)
    return bool(more) and not any(map(_is_certain, losses))


def _is_certain(loss: Floats) -> bool:
    """Whether the mean of a loss over tasks is more than two standard errors."""
    error = loss.std(ddof=1) / np.sqrt(len(loss)) if len(loss) > 1 else 0.0
    return bool(loss.mean() > 2 * error)


def _out_of_fold(model: CostModel, data: TrainingData, folds: Integers, seed: int) -> Floats:
    """Score each program by a model that was fine-tuned on other folds, its way chosen there."""
    scores = model.predict(data.batch)
    for held, learnt in _splits(data, folds):
        part = data.rows(learnt)
        if (way := chosen_way(model, part, folds[learnt], seed)) is not None:
            teaching = _teaching(model, part, seed)
            scores[held] = teaching.predict(select(data.batch, held))[way]
    return scores


def _splits(data: TrainingData, folds: Integers) -> Iterator[tuple[Bools, Bools]]:
    """What is held back in turn, and what is learnt from meanwhile."""
    for fold in np.unique(folds):
        learnt = folds != fold
        if np.any(np.bincount(data.groups[learnt]) > 1):
            yield ~learnt, learnt


def _teaching(model: CostModel, data: TrainingData, seed: int) -> FineTuning:
    return FineTuning(model, data.batch, data.labels, data.groups, seed=seed)


def _pairs_in_order(scores: Floats, data: TrainingData) -> float:
    """Return the share of a task's pairs in order, the mean over the tasks; NaN if none has any."""
    return evaluate_scores(scores, data.latency_s, data.groups).pairwise_accuracy
