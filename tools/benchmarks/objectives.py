"""What would make the model of trees rank better, by cross-validation over training tasks.

    python -m tools.benchmarks.objectives    # writes tools/results/objectives.json
    python -m tools.benchmarks.objectives --seeds 1 2 3 4 --learners shipped "pairs by regret"

All on the main hardware of ``datasets/zoo``, without the held-out networks. Each seed divides the
tasks anew, and whatever is compared is trained on the same divisions. Bundles add up their members'
scores, each standardised within the task. Scores are kept in ``tools/results/raw/objectives``, so
that nothing is trained twice.

A change is worth adopting (:func:`_passes`) if its top-1 is higher by two standard errors of the
difference or more, neither top-5 nor pairs are lower by more than one, it takes at most twice as
long to train, and has at most one and a half times the trees. The error is that over tasks, of the
mean over seeds, or that over the folds of all seeds, if it is larger.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import Floats, Integers
from costlib.data.dataset import Dataset
from costlib.training.batches import TrainingData, assemble
from costlib.training.metrics import pairwise_accuracy, top_k
from costlib.training.protocol import most_measured_hardware
from tools.benchmarks.contiguous import contiguous_columns
from tools.benchmarks.learners import BUNDLES, LEARNERS, SECOND_LOOKS, SHIPPED
from tools.evidence.files import RESULTS, ZOO, write_result

FOLDS = 3
KEPT = RESULTS / "raw" / "objectives"
FIGURES = ("top1", "top5", "pairwise_accuracy")

MOST_TRAINING, MOST_TREES = 2.0, 1.5
"""As multiples of what is shipped."""


class Trials:
    """Scores of programs by models that were not trained on their tasks."""

    def __init__(self, data: TrainingData, folder: Path) -> None:
        columns = data.batch.pooled()
        self._columns = np.ascontiguousarray(columns[:, np.nanstd(columns, 0) > 0])
        self._data, self._folder = data, folder
        ends = np.cumsum(np.bincount(data.groups))
        self._tasks = [slice(*bounds) for bounds in zip([0, *ends], ends, strict=False)]
        folder.mkdir(parents=True, exist_ok=True)

    def folds(self, seed: int) -> Integers:
        """Return each task's fold."""
        return np.random.default_rng(seed).permutation(len(self._tasks)) % FOLDS

    def train(self, name: str, seed: int) -> None:
        """Score all programs by a learner, unless that was done before."""
        file = self._file(name, seed)
        if file.exists():
            return
        learner, data, began = LEARNERS[name], self._data, time.process_time()
        columns = self._columns
        if learner.contiguous:
            columns = np.column_stack([columns, contiguous_columns(data.batch)])
        fold = self.folds(seed)[data.groups]
        scores = np.empty(len(fold))
        for number in range(FOLDS):
            judged = fold == number
            rows = columns[~judged], data.labels[~judged], data.groups[~judged]
            scores[judged] = learner.fit(*rows, seed).predict(columns[judged])
        np.savez(file, scores=scores, seconds=time.process_time() - began)

    def seeds(self, *names: str) -> set[int]:
        """Return the seeds that all of these learners were trained with."""
        return set.intersection(
            *({int(f.stem.rpartition("-")[2]) for f in self._files(name)} for name in names)
        )

    def seconds(self, *names: str) -> float:
        """Return what a processor takes to train these, on the average."""
        return sum(
            float(np.mean([np.load(file)["seconds"] for file in self._files(name)]))
            for name in names
        )

    def scores(self, seed: int, names: Sequence[str]) -> Floats:
        """Return the sum of learners' scores, each standardised within each task."""
        total = np.zeros(len(self._data.labels))
        for name in names:
            scores = np.load(self._file(name, seed))["scores"]
            for task in self._tasks:
                spread = max(float(scores[task].std()), 1e-9)
                total[task] += (scores[task] - scores[task].mean()) / spread
        return total

    def looked_at_twice(self, seed: int, look: tuple[str, str, int]) -> Floats:
        """Let a second learner rank so many programs that are the best by the first."""
        first, second, count = look
        scores, again = self.scores(seed, (first,)), self.scores(seed, (second,))
        for task in self._tasks:
            best = np.argsort(-scores[task], kind="stable")[:count] + task.start
            scores[best] = again[best] + 1e3
        return scores

    def figures(self, scores: Floats) -> Floats:
        """Return :data:`FIGURES` of each task, float64 `tasks x 3`."""
        rows = []
        for task in self._tasks:
            judged = scores[task], self._data.latency_s[task]
            best = judged[1].min()
            first, of_five = (best / top_k(*judged, k) for k in (1, 5))
            rows.append((first, of_five, pairwise_accuracy(*judged)))
        return np.array(rows)

    def weighted(self, found: Floats) -> float:
        """Return top-1 with tasks weighted by their time, of figures by seed and task."""
        best = np.array([self._data.latency_s[task].min() for task in self._tasks])
        return float(best.sum() / (best / found[:, :, 0]).mean(0).sum())

    def vectorized(self) -> list[str]:
        """Return whether each task's best program vectorizes its innermost loop."""
        column = self._data.batch.context[:, self._data.batch.names.index("vectorized")]
        best = [task.start + int(self._data.latency_s[task].argmin()) for task in self._tasks]
        return ["vectorized" if yes else "not vectorized" for yes in column[best]]

    def _file(self, name: str, seed: int) -> Path:
        return self._folder / f"{name.replace(' ', '_')}-{seed}.npz"

    def _files(self, name: str) -> list[Path]:
        return sorted(self._folder.glob(f"{name.replace(' ', '_')}-*.npz"))


def main() -> None:
    """Train what is missing, compare, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS))
    arguments = parser.parse_args()
    dataset = Dataset.open(arguments.dataset)
    hardware = most_measured_hardware(dataset)
    data = assemble(dataset, hardware=[hardware])
    names = dict(dataset.scan("workloads").select("workload_id", "name").collect().iter_rows())
    trials = Trials(data, KEPT)
    for seed, name in product(arguments.seeds, arguments.learners):
        trials.train(name, seed)
    result = {
        "dataset": dataset.path.name,
        "hardware": hardware,
        "programs": len(data.labels),
        "tasks": len(data.tasks),
        "folds": FOLDS,
        "compared": list(_compared(trials)),
        "lost": {
            "operator": _lost(trials, [names[task].split("_")[0] for task, _ in data.tasks]),
            "best program": _lost(trials, trials.vectorized()),
        },
    }
    write_result("objectives", result)
    print(json.dumps(result, indent=1))


def _compared(trials: Trials) -> Iterator[dict[str, Any]]:
    shipped = {
        seed: trials.figures(trials.scores(seed, (SHIPPED,))) for seed in trials.seeds(SHIPPED)
    }
    alone = {name: (name,) for name in LEARNERS}
    looks = {f"{a}, then {b} of {n}": (a, b, n) for a, b, n in SECOND_LOOKS}
    ways: dict[str, tuple[tuple[str, ...], Callable[[int], Floats]]] = {
        name: (members, partial(trials.scores, names=members))
        for name, members in (alone | BUNDLES).items()
    } | {
        name: (look[:2], partial(trials.looked_at_twice, look=look)) for name, look in looks.items()
    }
    for name, (members, score) in ways.items():
        seeds = sorted(trials.seeds(*members) & shipped.keys())
        if not seeds:
            continue
        found = np.array([trials.figures(score(seed)) for seed in seeds])
        base = np.array([shipped[seed] for seed in seeds])
        folds = np.array([trials.folds(seed) for seed in seeds])
        row = {
            "name": name,
            "seeds": len(seeds),
            **_means(found, ""),
            "weighted_top1": round(trials.weighted(found), 4),
            **_gains(found - base, folds),
            "training": round(trials.seconds(*members) / trials.seconds(SHIPPED), 2),
            "trees": trees(members) / trees((SHIPPED,)),
        }
        yield row | {"passes": _passes(row)}


def trees(members: Sequence[str]) -> int:
    """Return how many trees learners have together."""
    return sum(LEARNERS[name].config.num_trees for name in members)


def _means(found: Floats, prefix: str) -> dict[str, float]:
    """Return the mean of each figure of float64 `seeds x tasks x figures`."""
    means = np.nanmean(found, axis=(0, 1))
    return {prefix + name: round(float(m), 4) for name, m in zip(FIGURES, means, strict=True)}


def _gains(differences: Floats, folds: Integers) -> dict[str, float]:
    """Return the mean differences and their errors."""
    of_tasks = np.nanmean(differences, axis=0)
    of_folds = np.array(
        [
            np.nanmean(one[fold == number], axis=0)
            for one, fold in zip(differences, folds, strict=True)
            for number in range(FOLDS)
        ]
    )
    errors = np.maximum(_error(of_tasks), _error(of_folds))
    named = {f"{name}_error": round(float(e), 4) for name, e in zip(FIGURES, errors, strict=True)}
    return _means(differences, "gain_of_") | named


def _error(values: Floats) -> Floats:
    """Return the standard error of the mean of each column."""
    count = (~np.isnan(values)).sum(0)
    return np.asarray(np.nanstd(values, axis=0, ddof=1) / np.sqrt(count))


def _lost(trials: Trials, kinds: Sequence[str]) -> list[dict[str, Any]]:
    """Return by kind of task what the shipped model's first choices lose, most of all first."""
    seeds = sorted(trials.seeds(SHIPPED))
    first = np.array([trials.figures(trials.scores(seed, (SHIPPED,)))[:, 0] for seed in seeds])
    lost, far, kind = 1 - first.mean(0), (first < _FAR).mean(0), np.array(kinds)
    rows = [
        {
            "kind": str(name),
            "tasks": int((kind == name).sum()),
            "lost": round(float(lost[kind == name].mean()), 3),
            "share_of_all": round(float(lost[kind == name].sum() / lost.sum()), 3),
            "far": round(float(far[kind == name].mean()), 3),
        }
        for name in np.unique(kind)
    ]
    return sorted(rows, key=lambda row: -row["share_of_all"])


_FAR = 0.5
"""A first choice with less of the best throughput is far from it."""


def _passes(row: dict[str, Any]) -> bool:
    gain, error = ({name: row[key.format(name)] for name in FIGURES} for key in _KEYS)
    return bool(
        gain["top1"] > 0
        and gain["top1"] >= 2 * error["top1"]
        and all(gain[name] >= -error[name] for name in FIGURES)
        and row["training"] <= MOST_TRAINING
        and row["trees"] <= MOST_TREES
    )


_KEYS = ("gain_of_{}", "{}_error")


if __name__ == "__main__":
    main()
