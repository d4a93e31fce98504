"""Compare cost models on the held-out networks, by the evaluation protocol.

    python -m tools.benchmarks.leaderboard       # writes tools/results/leaderboard.json

Every model is trained on the training tasks of a dataset, as measured on the hardware that it is
judged on ("all hardware": on the others, too), with several seeds, and judged on the dataset's
held-out networks. What is there already for a model and seed is not computed again; a dataset
that has grown starts the table anew. The rankers (:mod:`tools.benchmarks.rankers`) need
``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import t as student

from costlib.data.dataset import Dataset
from costlib.models.baselines.ensemble import EnsembleModel
from costlib.models.baselines.mlp import MlpConfig, MlpModel
from costlib.models.baselines.sequence import SequenceModel
from costlib.models.baselines.statement_gbdt import StatementGbdtModel
from costlib.models.gbdt import GbdtModel, ScheduleGbdtModel
from costlib.training.batches import TrainingData, assemble
from costlib.training.metrics import top_k
from costlib.training.protocol import evaluate_protocol, most_measured_hardware, network_weights
from tools.benchmarks.rankers import RandomRanker, Ranker, StockXgb, TensetGbdt, TensetMlp, Tlp
from tools.evidence.files import ZOO, read_result, write_result
from tools.evidence.protocol import CONFIDENCE

MODELS: dict[str, Any] = {
    "random": RandomRanker,
    "MetaSchedule XGBModel": StockXgb,
    "TenSet GBDT": TensetGbdt,
    "TenSet MLP": TensetMlp,
    "TLP": Tlp,
    "gbdt": GbdtModel,
    "gbdt-statements": StatementGbdtModel,
    "gbdt-schedules": ScheduleGbdtModel,
    "mlp": MlpModel,
    "mlp, pairs across tasks": lambda: MlpModel(MlpConfig(pairs="batch")),
    "sequence": SequenceModel,
    "ensemble": EnsembleModel,
    "gbdt, all hardware": GbdtModel,
    "ensemble, all hardware": EnsembleModel,
}
ALL_HARDWARE = "all hardware"
FIGURES = ("top1", "top5", "top10", "pairwise_accuracy", "rank_correlation")


def main() -> None:
    """Fill the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
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
    table = _begun(data)
    for name in arguments.models:
        for seed in arguments.seeds:
            if str(seed) not in table["models"].setdefault(name, {}):
                model = MODELS[name]()
                learned = None if name.endswith(ALL_HARDWARE) else [hardware]
                training = assemble(dataset, hardware=learned, view=model.view)
                judged = assemble(held_out, hardware=[hardware], view=model.view)
                weights = network_weights(held_out)
                row = _judge(model, training, judged, weights, seed)
                table["models"][name][str(seed)] = row
                table["summary"] = {n: _summary(rows) for n, rows in table["models"].items()}
                write_result("leaderboard", table)
                figures = "  ".join(f"{f} {row[f]:.4f}" for f in FIGURES)
                print(f"{name:24} seed {seed}  {figures}", flush=True)


def _judge(
    model: Ranker, training: TrainingData, judged: TrainingData, weights: Any, seed: int
) -> dict[str, Any]:
    model.fit(training.batch, training.labels, training.groups, seed=seed)
    scores = np.asarray(model.predict(judged.batch))
    metrics = evaluate_protocol(judged, scores, weights)
    return {
        **metrics.model_dump(),
        "tasks_top1": _tasks(judged, scores, 1),
        "tasks_top5": _tasks(judged, scores, 5),
    }


def _tasks(data: TrainingData, scores: np.ndarray[Any, Any], k: int) -> dict[str, float]:
    """Share of its best throughput that the first k reach, task by task."""
    shares = {}
    for number, (workload_id, _) in enumerate(data.tasks):
        rows = data.groups == number
        latency_s = data.latency_s[rows]
        shares[workload_id] = round(float(latency_s.min() / top_k(scores[rows], latency_s, k)), 4)
    return shares


def _summary(rows: dict[str, Any]) -> dict[str, Any]:
    """Mean over the seeds, the range, and the interval that holds the mean of all seeds."""
    summary = {}
    for figure in FIGURES:
        values = np.array([row[figure] for row in rows.values()])
        entry = {"mean": values.mean(), "range": [values.min(), values.max()]}
        if len(values) > 1:
            error = values.std(ddof=1) / len(values) ** 0.5
            error *= student.ppf((1 + CONFIDENCE) / 2, len(values) - 1)
            entry["confidence_95"] = [values.mean() - error, values.mean() + error]
        summary[figure] = {k: np.round(v, 4).tolist() for k, v in entry.items()}
    return summary


def _programs(dataset: Dataset) -> int:
    return int(dataset.scan().filter(status="ok").select(pl.len()).collect().item())


def _begun(data: dict[str, Any]) -> dict[str, Any]:
    """Return the table as it is, or an empty one if it is of other data."""
    table: dict[str, Any] = read_result("leaderboard")
    return table if table.get("data") == data else {"data": data, "models": {}, "summary": {}}


if __name__ == "__main__":
    main()
