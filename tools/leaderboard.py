"""Compare cost models on the held-out networks, by the evaluation protocol.

    python tools/leaderboard.py                 # writes tools/results/leaderboard.json

Every model is trained on the training tasks of a dataset, with several seeds, and judged on its
held-out networks. What is there already for a model and seed is not computed again; a dataset
that has grown starts the table anew.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.models.base import CostModel
from costlib.models.ensemble import EnsembleModel
from costlib.models.gbdt import GbdtModel
from costlib.models.mlp import MlpConfig, MlpModel
from costlib.models.sequence import SequenceModel
from costlib.models.statement_gbdt import StatementGbdtModel
from costlib.training.assemble import TrainingData, assemble
from costlib.training.protocol import (
    evaluate_protocol,
    most_measured_hardware,
    network_weights,
)

ROOT = Path(__file__).parent
RESULT = ROOT / "results" / "leaderboard.json"
MODELS: dict[str, Any] = {
    "gbdt": GbdtModel,
    "gbdt-statements": StatementGbdtModel,
    "mlp": MlpModel,
    "mlp, pairs across tasks": lambda: MlpModel(MlpConfig(pairs="batch")),
    "sequence": SequenceModel,
    "ensemble": EnsembleModel,
}
FIGURES = ("top1", "top5", "top10", "pairwise_accuracy")


def main() -> None:
    """Fill the table and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ROOT.parent / "datasets" / "zoo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()

    dataset = Dataset.open(arguments.dataset)
    held_out = dataset.held_out()
    if held_out is None:
        parser.error(f"{arguments.dataset} has no held-out networks")
    hardware = most_measured_hardware(held_out)
    data = {
        "dataset": dataset.path.name,
        "hardware": hardware,
        "programs": _programs(dataset),
        "held_out_programs": _programs(held_out),
    }
    table = _read(arguments.out, data)
    for name in arguments.models:
        for seed in arguments.seeds:
            if str(seed) not in table["models"].setdefault(name, {}):
                row = _judge(MODELS[name](), dataset, held_out, hardware, seed)
                table["models"][name][str(seed)] = row
                table["summary"] = {n: _summary(rows) for n, rows in table["models"].items()}
                arguments.out.write_text(json.dumps(table, indent=1) + "\n")
                figures = "  ".join(f"{f} {row[f]:.4f}" for f in FIGURES)
                print(f"{name:24} seed {seed}  {figures}  {row['seconds']:.0f} s", flush=True)


def _judge(
    model: CostModel, dataset: Dataset, held_out: Dataset, hardware: str, seed: int
) -> dict[str, Any]:
    training = assemble(dataset, view=model.view)
    started = time.perf_counter()
    model.fit(training.batch, training.labels, training.groups, seed=seed)
    seconds = time.perf_counter() - started
    judged: TrainingData = assemble(held_out, hardware=[hardware], view=model.view)
    scores = model.predict(judged.batch)
    metrics = evaluate_protocol(judged, scores, network_weights(held_out))
    return {**metrics.model_dump(), "seconds": round(seconds, 1)}


def _summary(rows: dict[str, Any]) -> dict[str, Any]:
    """Mean over the seeds, lowest and highest."""
    summary = {}
    for figure in FIGURES:
        values = [row[figure] for row in rows.values()]
        summary[figure] = {
            "mean": round(float(np.mean(values)), 4),
            "range": [round(min(values), 4), round(max(values), 4)],
        }
    return summary


def _programs(dataset: Dataset) -> int:
    return int(dataset.scan().filter(status="ok").select(pl.len()).collect().item())


def _read(file: Path, data: dict[str, Any]) -> dict[str, Any]:
    if file.exists():
        table: dict[str, Any] = json.loads(file.read_text())
        if table["data"] == data:
            return table
    return {"data": data, "models": {}, "summary": {}}


if __name__ == "__main__":
    main()
