"""From one hardware to another: what a few of the new one's records are worth.

    python tools/transfer.py         # writes tools/results/transfer.json

For each hardware of ``datasets/zoo`` but the main one, by cross-validation over its tasks (a fold's
tasks are trained on nowhere), with several seeds for the 7 % (TLP, ASPLOS'23):

- ``zero-shot``: trained on the main hardware alone;
- ``together, 7 %``: one model of both, whose context tells the hardware, with 7 % of the records;
- ``fine-tuned, 7 %``: the main hardware's model, corrected by the 7 %;
- ``scratch, 7 %`` and ``scratch, 100 %``: trained on the new hardware alone;
- ``together, 100 %``: one model of both with all records.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.data.dataset import Dataset
from costlib.features.batch import FeatureBatch, join, select
from costlib.models.gbdt import GbdtModel
from costlib.models.residual import CorrectedModel
from costlib.training.assemble import TrainingData, assemble
from costlib.training.metrics import evaluate_scores
from costlib.training.protocol import most_measured_hardware

ROOT = Path(__file__).parent
RESULT = ROOT / "results" / "transfer.json"
FOLDS = 4
SHARE = 0.07

Array = np.ndarray[Any, Any]
Score = Callable[[FeatureBatch], Array]


def main() -> None:
    """Compare the ways for each hardware and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ROOT.parent / "datasets" / "zoo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    dataset = Dataset.open(arguments.dataset)
    main_hardware = most_measured_hardware(dataset)
    main_data = assemble(dataset, hardware=[main_hardware])
    result: dict[str, Any] = {"from": main_hardware, "share": SHARE, "to": {}}
    result["seeds"] = arguments.seeds
    for hardware_id in dataset.hardware():
        if hardware_id != main_hardware:
            data = assemble(dataset, hardware=[hardware_id])
            result["to"][hardware_id] = {
                "programs": len(data.labels),
                "tasks": len(data.tasks),
                **_compared(main_data, data, arguments.seeds),
            }
            RESULT.write_text(json.dumps(result, indent=1) + "\n")
            print(hardware_id, json.dumps(result["to"][hardware_id], indent=1), flush=True)


def _compared(source: TrainingData, target: TrainingData, seeds: Sequence[int]) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {}
    for seed in seeds:
        scores: dict[str, Array] = {}
        folds = np.random.default_rng(seed).permutation(len(target.tasks)) % FOLDS
        few = np.random.default_rng(seed).random(len(target.labels)) < SHARE
        for fold in range(FOLDS):
            judged = folds[target.groups] == fold
            hidden = {target.tasks[i][0] for i in np.flatnonzero(folds == fold)}
            known = np.array([workload not in hidden for workload, _ in source.tasks])
            for name, score in _ways(source, known[source.groups], target, ~judged, few, seed):
                values = score(select(target.batch, judged))
                scores.setdefault(name, np.empty(len(target.labels)))[judged] = values
        for name, values in scores.items():
            metrics = evaluate_scores(values, target.latency_s, target.groups)
            row = {
                "top1": metrics.top1_task_mean,
                "pairwise_accuracy": metrics.pairwise_accuracy,
            }
            found.setdefault(name, []).append(row)
    return {
        name: {
            figure: {
                "mean": round(float(np.mean([row[figure] for row in rows])), 4),
                "range": [
                    round(min(row[figure] for row in rows), 4),
                    round(max(row[figure] for row in rows), 4),
                ],
            }
            for figure in rows[0]
        }
        for name, rows in found.items()
    }


def _ways(
    source: TrainingData, known: Array, target: TrainingData, trained: Array, few: Array, seed: int
) -> list[tuple[str, Score]]:
    """Train each way on what it may see."""
    base = _fit([(source, known)], seed)
    corrected = CorrectedModel(base, seed=seed)
    rows = trained & few
    corrected.refit(select(target.batch, rows), target.latency_s[rows], target.groups[rows])
    return [
        ("zero-shot", base.predict),
        ("together, 7 %", _fit([(source, known), (target, rows)], seed).predict),
        ("fine-tuned, 7 %", corrected.predict),
        ("scratch, 7 %", _fit([(target, rows)], seed).predict),
        ("scratch, 100 %", _fit([(target, trained)], seed).predict),
        ("together, 100 %", _fit([(source, known), (target, trained)], seed).predict),
    ]


def _fit(parts: list[tuple[TrainingData, Array]], seed: int) -> GbdtModel:
    model = GbdtModel()
    shifts = np.cumsum([0, *(len(data.tasks) for data, _ in parts)])
    model.fit(
        join([select(data.batch, rows) for data, rows in parts]),
        np.concatenate([data.labels[rows] for data, rows in parts]),
        np.concatenate(
            [data.groups[rows] + s for (data, rows), s in zip(parts, shifts, strict=False)]
        ),
        seed=seed,
    )
    return model


if __name__ == "__main__":
    main()
