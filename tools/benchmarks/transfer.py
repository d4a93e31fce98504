"""From a machine to its variants: what a few of their records are worth.

    python -m tools.benchmarks.transfer      # adds "variants" to tools/results/transfer.json

The main hardware of ``datasets/zoo`` is the one with the most records; its variants are of the same
processor (:mod:`tools.benchmarks.between_hardware`). For each of them, by cross-validation over its
tasks (a fold's tasks are trained on nowhere), with several seeds. The 7 % (TLP, ASPLOS'23) are
whole tasks:

- ``zero-shot``: trained on the main hardware alone;
- ``together, 7 %``: one model of both, whose context tells the hardware, with 7 % of the records;
- ``fine-tuned, 7 %``: the main hardware's model, corrected by the 7 %;
- ``scratch, 7 %`` and ``scratch, 100 %``: trained on the new hardware alone;
- ``together, 100 %``: one model of both with all records.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from costlib.data.dataset import Dataset
from costlib.features.batch import FeatureBatch, select
from costlib.models.gbdt import GbdtModel
from costlib.models.residual import CorrectedModel
from costlib.training.batches import TrainingData, assemble
from costlib.training.protocol import most_measured_hardware
from tools.benchmarks.between_hardware import figures, fitted, machines_of, rows_of, some_tasks
from tools.evidence.files import ZOO, read_result, write_result

FOLDS = 4
SHARE = 0.07
_SHOWN = ("top1", "pairwise_accuracy")

Array = np.ndarray[Any, Any]
Score = Callable[[FeatureBatch], Array]


def main() -> None:
    """Compare the ways, a seed after the other; seeds that are there are not measured again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    dataset = Dataset.open(arguments.dataset)
    main_hardware = most_measured_hardware(dataset)
    source = assemble(dataset, hardware=[main_hardware])
    known, machines = dataset.hardware(), machines_of(dataset)
    targets = {
        hardware_id: assemble(dataset, hardware=[hardware_id])
        for hardware_id, hardware in known.items()
        if hardware.model == known[main_hardware].model and hardware_id not in machines
    }
    begun = {
        "from": main_hardware,
        "share": SHARE,
        "programs": {
            name: len(data.labels) for name, data in [(main_hardware, source), *targets.items()]
        },
        "by_seed": {},
    }
    result = read_result("transfer").get("variants", {})
    if result.get("programs") != begun["programs"]:
        result = begun
    for seed in arguments.seeds:
        if str(seed) not in result["by_seed"]:
            result["by_seed"][str(seed)] = _one_seed(source, targets, seed)
            result["to"] = _over_seeds(result["by_seed"], targets)
            write_result("transfer", {**read_result("transfer"), "variants": result})
            print(seed, json.dumps(result["by_seed"][str(seed)]), flush=True)


def _one_seed(source: TrainingData, targets: dict[str, TrainingData], seed: int) -> dict[str, Any]:
    """Judge each way on each hardware, by cross-validation over the workloads of all."""
    workloads = sorted({w for data in (source, *targets.values()) for w, _ in data.tasks})
    drawn = np.random.default_rng(seed).permutation(len(workloads)) % FOLDS
    fold_of = dict(zip(workloads, drawn, strict=True))
    scores: dict[str, dict[str, Array]] = {name: {} for name in targets}
    for fold in range(FOLDS):
        hidden = rows_of(source, [w for w, one in fold_of.items() if one == fold])
        base = fitted([(source, ~hidden)], seed)
        for name, target in targets.items():
            judged = rows_of(target, [w for w, one in fold_of.items() if one == fold])
            few = some_tasks(target, ~judged, SHARE * len(target.labels), seed)
            for way, score in _ways(base, source, ~hidden, target, ~judged, few, seed):
                values = score(select(target.batch, judged))
                scores[name].setdefault(way, np.empty(len(target.labels)))[judged] = values
    return {
        name: {way: figures(values, targets[name]) for way, values in found.items()}
        for name, found in scores.items()
    }


def _over_seeds(by_seed: dict[str, Any], targets: dict[str, TrainingData]) -> dict[str, Any]:
    """Return mean and range of each figure."""
    summary: dict[str, Any] = {}
    for name, data in targets.items():
        summary[name] = {"programs": len(data.labels), "tasks": len(data.tasks)}
        for way in next(iter(by_seed.values()))[name]:
            rows = [one[name][way] for one in by_seed.values()]
            summary[name][way] = {
                figure: {
                    "mean": round(float(np.mean([row[figure] for row in rows])), 4),
                    "range": [
                        round(min(row[figure] for row in rows), 4),
                        round(max(row[figure] for row in rows), 4),
                    ],
                }
                for figure in _SHOWN
            }
    return summary


def _ways(
    base: GbdtModel,
    source: TrainingData,
    known: Array,
    target: TrainingData,
    trained: Array,
    few: Array,
    seed: int,
) -> list[tuple[str, Score]]:
    """Train each way on what it may see."""
    corrected = CorrectedModel(base, seed=seed)
    corrected.refit(select(target.batch, few), target.latency_s[few], target.groups[few])
    return [
        ("zero-shot", base.predict),
        ("together, 7 %", fitted([(source, known), (target, few)], seed).predict),
        ("fine-tuned, 7 %", corrected.predict),
        ("scratch, 7 %", fitted([(target, few)], seed).predict),
        ("scratch, 100 %", fitted([(target, trained)], seed).predict),
        ("together, 100 %", fitted([(source, known), (target, trained)], seed).predict),
    ]


if __name__ == "__main__":
    main()
