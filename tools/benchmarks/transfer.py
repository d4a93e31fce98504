"""From some machines to another: what some minutes of measuring on the new one are worth.

    python -m tools.benchmarks.transfer    # writes tools/results/transfer.json

Each machine of the dataset in turn is the new one. Models know the other machines, or only those of
another vendor, and then of the new one

- nothing: ``zero-shot``;
- what 1, 5 or 15 minutes of measuring bring: whole tasks, drawn at random, as many records as the
  machine's rate makes of the minutes. The model is fine-tuned on these tasks; how is chosen by
  cross-validation over them, as ``costlib adapt`` does;
- ``everything``: one model of all records.

``scratch`` is trained on the same records alone. All by cross-validation over the tasks of all
machines, nearly equal ones in the same fold: no model has seen a task that it ranks, on any
machine. The rate is that at which the dataset's own records were written, pauses left out.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from costlib.arrays import Bools, Floats
from costlib.data.dataset import Dataset
from costlib.data.splits import dealt, workload_keys
from costlib.features.batch import select
from costlib.models.base import CostModel
from costlib.models.fine_tuning import FineTuning
from costlib.models.gbdt import GbdtConfig, GbdtModel
from costlib.training.batches import TrainingData, assemble
from costlib.training.fine_tuning import FOLDS as WAY_FOLDS
from costlib.training.fine_tuning import chosen_way
from tools.benchmarks.between_hardware import (
    figures,
    fitted,
    machines_of,
    rows_of,
    some_tasks,
    vendor_of,
)
from tools.evidence.files import ZOO, write_result

FOLDS = 3
MINUTES = (1, 5, 15)
CONFIG = GbdtConfig(num_trees=100, learning_rate=0.15)
"""An eighth of the shipped model's trees, three times as bold: there are many models to train."""

PAUSE_S = 60.0
"""Without a record for so long, nothing was measured meanwhile."""

Scores = dict[str, dict[str, Floats]]
"""Of each program of a machine, by what the model knew before and what of the machine."""


def main() -> None:
    """Compare the ways and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = compared(Dataset.open(given.dataset), given.seed)
    write_result("transfer", found)
    print(json.dumps(found, indent=1))


def compared(dataset: Dataset, seed: int, config: GbdtConfig = CONFIG) -> dict[str, Any]:
    """Return the figures of each way on each machine."""
    machines = machines_of(dataset)
    data = {name: assemble(dataset, hardware=[name]) for name in machines}
    vendors = {name: vendor_of(hardware) for name, hardware in machines.items()}
    rates = {name: records_a_second(dataset, name) for name in machines}
    folds = dealt(workload_keys(dataset.scan("workloads")), FOLDS, seed)
    scores: dict[str, Scores] = {name: {} for name in machines}
    began = time.monotonic()
    for fold in range(FOLDS):
        judged = {w for w, number in folds.items() if number == fold}
        models = _Models(data, judged, seed, config)
        for name in machines:
            _score(scores[name], models, name, _sources(name, vendors), rates[name])
            print(
                f"fold {fold + 1} of {FOLDS}, {name}: {(time.monotonic() - began) / 60:.1f} min",
                flush=True,
            )
    return {
        "dataset": dataset.path.name,
        "seed": seed,
        "folds": FOLDS,
        "model": {"num_trees": config.num_trees, "learning_rate": config.learning_rate},
        "pause_s": PAUSE_S,
        "to": {
            name: {
                "vendor": vendors[name],
                "programs": len(data[name].labels),
                "tasks": len(data[name].tasks),
                "records_a_second": round(rates[name], 3),
                "sources": _sources(name, vendors),
                "ways": {
                    before: {
                        way: figures(values, data[name])
                        for way, values in found.items()
                        if not np.isnan(values).any()  # In some folds it was all there is.
                    }
                    for before, found in scores[name].items()
                },
            }
            for name in machines
        },
    }


def records_a_second(dataset: Dataset, hardware_id: str) -> float:
    """Return how many records a second a machine brought while it was measured."""
    times = dataset.scan().filter(pl.col("hardware") == hardware_id).select("measured_at")
    written = times.collect()["measured_at"].sort()
    gaps = written.diff().drop_nulls().dt.total_milliseconds() / 1000
    measuring = float(gaps.filter(gaps < PAUSE_S).sum())
    return len(written) / measuring if measuring else float("inf")


def _sources(name: str, vendors: dict[str, str]) -> dict[str, list[str]]:
    """Return the machines that a model knows before, by what is left out; each choice once."""
    found = {
        "machine": [other for other in vendors if other != name],
        "vendor": [other for other in vendors if vendors[other] != vendors[name]],
    }
    if found["vendor"] == found["machine"]:
        del found["vendor"]
    return {left_out: others for left_out, others in found.items() if others}


class _Models:
    """Models of a fold, each trained once; ``judged`` are the workloads that none of them sees."""

    def __init__(
        self, data: dict[str, TrainingData], judged: set[str], seed: int, config: GbdtConfig
    ) -> None:
        self.data, self.seed, self._config = data, seed, config
        self.judged = {name: rows_of(one, judged) for name, one in data.items()}
        self._of_machines: dict[frozenset[str], GbdtModel] = {}

    def of(self, *names: str) -> GbdtModel:
        """Return the model of all records of some machines."""
        key = frozenset(names)
        if key not in self._of_machines:
            parts = [(one, ~self.judged[name]) for name, one in self.data.items() if name in key]
            self._of_machines[key] = fitted(parts, self.seed, self._config)
        return self._of_machines[key]

    def few(self, name: str, programs: float) -> Bools | None:
        """Draw so many records of a machine; ``None`` if that is all there are, or more."""
        known = ~self.judged[name]
        chosen = some_tasks(self.data[name], known, programs, self.seed) & known
        return None if chosen.sum() == known.sum() else chosen

    def taught(self, base: GbdtModel, name: str, rows: Bools) -> CostModel:
        """Fine-tune a model on some records of a machine, or leave it as it is."""
        one = self.data[name].rows(rows)
        tasks = np.random.default_rng(self.seed).permutation(np.unique(one.groups))
        folds = np.zeros(len(one.tasks), "int64")
        folds[tasks] = np.arange(len(tasks)) % WAY_FOLDS
        way = chosen_way(base, one, folds[one.groups], self.seed)
        if way is None:
            return base
        return FineTuning(base, one.batch, one.labels, one.groups, seed=self.seed).model(way)

    def scratch(self, name: str, rows: Bools) -> GbdtModel:
        """Train on some records of a machine alone."""
        return fitted([(self.data[name], rows)], self.seed, self._config)


def _score(
    scores: Scores, models: _Models, name: str, sources: dict[str, list[str]], rate: float
) -> None:
    """Score the tasks of a fold on a machine in each way."""
    data, judged = models.data[name], models.judged[name]
    batch = select(data.batch, judged)

    def note(before: str, way: str, model: CostModel) -> None:
        ways = scores.setdefault(before, {})
        ways.setdefault(way, np.full(len(data.labels), np.nan))[judged] = model.predict(batch)

    few = {minutes: models.few(name, 60 * rate * minutes) for minutes in MINUTES}
    some = {_minutes(minutes): rows for minutes, rows in few.items() if rows is not None}
    for left_out, others in sources.items():
        base = models.of(*others)
        note(left_out, "zero-shot", base)
        for way, rows in some.items():
            note(left_out, way, models.taught(base, name, rows))
        note(left_out, "everything", models.of(*others, name))
    for way, rows in some.items():
        note("scratch", way, models.scratch(name, rows))
    note("scratch", "everything", models.of(name))


def _minutes(count: int) -> str:
    return f"{count} min"


if __name__ == "__main__":
    main()
