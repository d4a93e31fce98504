"""Where the ranking goes wrong, and what would mend it.

    python -m tools.benchmarks.ranking       # writes tools/results/ranking.json

All on the main hardware of ``datasets/zoo``. By cross-validation over the training tasks, so that
what is decided from it is not decided on the held-out networks:

- ``learning_curves``: with a part of the tasks, and with a part of each task's programs;
- ``feature_groups``: the model without one group of features at a time;
- ``operators``: which ones are ranked worst, and what their slow first choices cost.

On the held-out networks: ``calibration`` of the ensemble's uncertainty.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from costlib.data.dataset import Dataset
from costlib.features.batch import FeatureBatch, select
from costlib.features.columns import NESTS, TASK
from costlib.models.baselines.ensemble import EnsembleModel
from costlib.models.gbdt import GbdtModel
from costlib.training.batches import TrainingData, assemble
from costlib.training.metrics import evaluate_scores, pairwise_accuracy, top_k
from costlib.training.protocol import most_measured_hardware
from tools.evidence.files import ZOO, write_result

FOLDS = 4
SHARES = (0.125, 0.25, 0.5, 1.0)
STORE_GROUPS = {
    "stores": slice(0, 164),
    "stores: arithmetic": slice(0, 16),
    "stores: vectorised, unrolled and parallel loops": slice(16, 57),
    "stores: buffer accesses": slice(57, 147),
    "stores: arithmetic intensity": slice(147, 157),
    "stores: allocation and outer loops": slice(157, 164),
}
"""Columns of a store's features (``per_store_feature.cc``); those of GPUs are constant here."""

NEST_GROUPS = {
    "nests": "",
    "nests: runs of loops": "run",
    "nests: innermost loops": "loop",
    "nests: registers": "region",
    "nests: caches": "cache",
    "nests: data by depth": "depth",
    "nests: estimated cycles": "cycles",
}
"""How the names of their columns begin (:mod:`costlib.features.nest_features`)."""

Rows = np.ndarray[Any, np.dtype[np.bool_]]
Columns = np.ndarray[Any, np.dtype[np.int64]]


def main() -> None:
    """Run all parts and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    arguments = parser.parse_args()
    dataset = Dataset.open(arguments.dataset)
    hardware = most_measured_hardware(dataset)
    data = assemble(dataset, hardware=[hardware])
    held_out = dataset.held_out()
    assert held_out is not None, "the dataset has no held-out networks"
    names = dict(dataset.scan("workloads").select("workload_id", "name").collect().iter_rows())
    scores = _cross_validated(data, lambda rows: rows)
    result = {
        "dataset": dataset.path.name,
        "hardware": hardware,
        "programs": len(data.labels),
        "tasks": len(data.tasks),
        "learning_curves": _learning_curves(data),
        "feature_groups": _feature_groups(data, scores),
        "operators": _operators(data, scores, names),
        "calibration": _calibration(data, assemble(held_out, hardware=[hardware])),
    }
    write_result("ranking", result)
    print(json.dumps(result, indent=1))


def _cross_validated(
    data: TrainingData,
    keep: Callable[[Rows], Rows],
    change: Callable[[FeatureBatch], FeatureBatch] = lambda batch: batch,
) -> np.ndarray[Any, Any]:
    """Score each task by a model that was not trained on it.

    ``keep`` thins out the rows that a model is trained on, ``change`` the features.
    """
    folds = np.random.default_rng(0).permutation(len(data.tasks)) % FOLDS
    scores = np.empty(len(data.labels))
    batch = change(data.batch)
    for fold in range(FOLDS):
        judged = folds[data.groups] == fold
        rows = keep(~judged)
        model = GbdtModel()
        model.fit(select(batch, rows), data.labels[rows], data.groups[rows])
        scores[judged] = model.predict(select(batch, judged))
    return scores


def _figures(data: TrainingData, scores: np.ndarray[Any, Any]) -> dict[str, float]:
    metrics = evaluate_scores(scores, data.latency_s, data.groups)
    return {
        "top1": round(metrics.top1_task_mean, 4),
        "top5": round(metrics.top5_task_mean, 4),
        "pairwise_accuracy": round(metrics.pairwise_accuracy, 4),
    }


def _learning_curves(data: TrainingData) -> dict[str, dict[str, dict[str, float]]]:
    """Figures with a share of the tasks, and of the programs of each task."""
    rng = np.random.default_rng(0)
    of_task = rng.permutation(len(data.tasks)) / len(data.tasks)
    of_program = np.empty(len(data.labels))
    for group in range(len(data.tasks)):
        rows = np.flatnonzero(data.groups == group)
        of_program[rows] = rng.permutation(len(rows)) / len(rows)
    curves: dict[str, dict[str, dict[str, float]]] = {"tasks": {}, "programs_per_task": {}}
    for name, place in (("tasks", of_task[data.groups]), ("programs_per_task", of_program)):
        for share in SHARES:
            few = place < share
            curves[name][str(share)] = _figures(
                data, _cross_validated(data, partial(np.logical_and, few))
            )
    return curves


def _feature_groups(data: TrainingData, scores: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Figures of the model that does not see a group of features."""
    figures = {"all": _figures(data, scores)}
    stores = {name: np.r_[columns] for name, columns in STORE_GROUPS.items()}
    nests = {
        name: len(TASK) + np.flatnonzero([column.startswith(start) for column in NESTS])
        for name, start in NEST_GROUPS.items()
    }
    nothing = np.empty(0, "int64")
    groups = {name: (columns, nothing) for name, columns in stores.items()}
    groups |= {name: (nothing, columns) for name, columns in nests.items()}
    for name, (of_stores, of_context) in groups.items():

        def without(
            batch: FeatureBatch, of_stores: Columns = of_stores, of_context: Columns = of_context
        ) -> FeatureBatch:
            stores, context = batch.stores.copy(), batch.context.copy()
            stores[:, of_stores] = 0
            context[:, of_context] = 0
            return FeatureBatch(stores, batch.offsets, context, batch.names)

        figures[f"without {name}"] = _figures(
            data, _cross_validated(data, lambda rows: rows, without)
        )
    return figures


def _operators(
    data: TrainingData, scores: np.ndarray[Any, Any], names: dict[str, str]
) -> list[dict[str, Any]]:
    """Operators, by their main word, those with the slowest first choices first."""
    found: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for group, (workload_id, _) in enumerate(data.tasks):
        rows = data.groups == group
        latency_s = data.latency_s[rows]
        best = latency_s.min()
        found[names[workload_id].split("_")[0]].append(
            (
                top_k(scores[rows], latency_s, 1) / best,
                top_k(scores[rows], latency_s, 5) / best,
                pairwise_accuracy(scores[rows], latency_s),
            )
        )
    rows_of_table = [
        {
            "operator": name,
            "tasks": len(values),
            "slow_down_of_first_choice": round(float(np.mean([v[0] for v in values])), 3),
            "slow_down_of_best_of_five": round(float(np.mean([v[1] for v in values])), 3),
            "pairwise_accuracy": round(float(np.nanmean([v[2] for v in values])), 3),
        }
        for name, values in found.items()
    ]
    return sorted(rows_of_table, key=lambda row: -row["slow_down_of_first_choice"])


def _calibration(data: TrainingData, judged: TrainingData) -> dict[str, Any]:
    """How often an ensemble's errors stay within so many of its sigmas, against a Gaussian's."""
    model = EnsembleModel()
    model.fit(data.batch, data.labels, data.groups)
    scores, sigma = model.predict_with_uncertainty(judged.batch)
    target = np.log(judged.labels)
    centred_scores, centred_target = scores.copy(), target.copy()
    for group in range(len(judged.tasks)):
        rows = judged.groups == group
        centred_scores[rows] -= scores[rows].mean()
        centred_target[rows] -= target[rows].mean()
    scale = float(centred_scores @ centred_target) / float(centred_target @ centred_target)
    errors = np.abs(centred_scores - scale * centred_target) / sigma
    levels = np.arange(0.1, 1.0, 0.1)
    covered = [float((errors <= norm.ppf((1 + level) / 2)).mean()) for level in levels]
    return {
        "level": [round(float(level), 2) for level in levels],
        "covered": [round(share, 4) for share in covered],
    }


if __name__ == "__main__":
    main()
