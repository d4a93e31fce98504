"""What benches of transfer share: models that know some sets of programs and are taught another.

A *set* holds the programs of a machine, or those in a precision.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from costlib.arrays import Bools, Floats
from costlib.features.batch import select
from costlib.models.base import CostModel
from costlib.models.fine_tuning import FineTuning
from costlib.models.gbdt import GbdtConfig, GbdtModel
from costlib.training.batches import TrainingData
from costlib.training.fine_tuning import FOLDS as WAY_FOLDS
from costlib.training.fine_tuning import chosen_way
from tools.benchmarks.between_hardware import figures, fitted, rows_of, some_tasks

Scores = dict[str, dict[str, Floats]]
"""Of each program of a set, by what the model knew before and what of the set."""

Sources = Mapping[str, Sequence[str]]
"""Which sets a model knows before, by what this choice is called."""


def scored(
    data: Mapping[str, TrainingData],
    sources: Mapping[str, Sources],
    few: Mapping[str, Mapping[str, float]],
    folds: Mapping[str, int],
    seed: int,
    config: GbdtConfig,
) -> dict[str, Scores]:
    """Score every program of some sets by models that have not seen its task, in any set.

    Parameters
    ----------
    data
        The programs of each set.
    sources
        The sets to be taught, and what is known before.
    few
        How many programs of each are taught, by what this is called: whole tasks, drawn at random.
        The model is fine-tuned on them; how is chosen by cross-validation over them, as ``costlib
        adapt`` does.
    folds
        The fold of each workload.
    seed, config
        Of the models.

    Returns
    -------
    dict
        By set. The model knew what ``sources`` says, or nothing (``scratch``), and of the set
        itself nothing (``zero-shot``), ``few``, or ``everything``. NaN where few are all there are.
    """
    scores: dict[str, Scores] = {name: {} for name in sources}
    began = time.monotonic()
    count = 1 + max(folds.values())
    for fold in range(count):
        apart = {workload_id for workload_id, number in folds.items() if number == fold}
        models = _Models(data, apart, seed, config)
        for name in sources:
            _score(scores[name], models, name, sources[name], few[name])
            minutes = (time.monotonic() - began) / 60
            print(f"fold {fold + 1} of {count}, {name}: {minutes:.1f} min", flush=True)
    return scores


def judged(scores: Scores, data: TrainingData) -> dict[str, dict[str, Any]]:
    """Judge the scores of a set; what is missing of some programs, because few were all, is not."""
    return {
        before: {
            way: figures(values, data) for way, values in ways.items() if not np.isnan(values).any()
        }
        for before, ways in scores.items()
    }


class _Models:
    """Models of a fold, each trained once; ``apart`` are the workloads that none of them sees."""

    def __init__(
        self, data: Mapping[str, TrainingData], apart: set[str], seed: int, config: GbdtConfig
    ) -> None:
        self.data, self.seed, self._config = data, seed, config
        self.judged = {name: rows_of(one, apart) for name, one in data.items()}
        self._of_sets: dict[frozenset[str], GbdtModel] = {}

    def of(self, *names: str) -> GbdtModel:
        """Return the model of all records of some sets."""
        key = frozenset(names)
        if key not in self._of_sets:
            parts = [(one, ~self.judged[name]) for name, one in self.data.items() if name in key]
            self._of_sets[key] = fitted(parts, self.seed, self._config)
        return self._of_sets[key]

    def few(self, name: str, programs: float) -> Bools | None:
        """Draw so many records of a set; ``None`` if that is all there are, or more."""
        known = ~self.judged[name]
        chosen = some_tasks(self.data[name], known, programs, self.seed) & known
        return None if chosen.sum() == known.sum() else chosen

    def taught(self, base: GbdtModel, name: str, rows: Bools) -> CostModel:
        """Fine-tune a model on some records of a set, or leave it as it is."""
        one = self.data[name].rows(rows)
        tasks = np.random.default_rng(self.seed).permutation(np.unique(one.groups))
        folds = np.zeros(len(one.tasks), "int64")
        folds[tasks] = np.arange(len(tasks)) % WAY_FOLDS
        way = chosen_way(base, one, folds[one.groups], self.seed)
        if way is None:
            return base
        return FineTuning(base, one.batch, one.labels, one.groups, seed=self.seed).model(way)

    def scratch(self, name: str, rows: Bools) -> GbdtModel:
        """Train on some records of a set alone."""
        return fitted([(self.data[name], rows)], self.seed, self._config)


def _score(
    scores: Scores, models: _Models, name: str, sources: Sources, few: Mapping[str, float]
) -> None:
    """Score the tasks of a fold in each way."""
    data, judged = models.data[name], models.judged[name]
    if not judged.any():
        return
    batch = select(data.batch, judged)

    def note(before: str, way: str, model: CostModel) -> None:
        ways = scores.setdefault(before, {})
        ways.setdefault(way, np.full(len(data.labels), np.nan))[judged] = model.predict(batch)

    drawn = {way: models.few(name, programs) for way, programs in few.items()}
    some = {way: rows for way, rows in drawn.items() if rows is not None}
    for before, known in sources.items():
        base = models.of(*known)
        note(before, "zero-shot", base)
        for way, rows in some.items():
            note(before, way, models.taught(base, name, rows))
        note(before, "everything", models.of(*known, name))
    for way, rows in some.items():
        note("scratch", way, models.scratch(name, rows))
    note("scratch", "everything", models.of(name))
