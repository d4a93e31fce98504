"""Compare cost models on the held-out networks, by the evaluation protocol.

    python tools/leaderboard.py                 # writes tools/results/leaderboard.json
    python tools/leaderboard.py --markdown      # prints what is there as a table

Every model is trained on the training tasks of a dataset, as measured on the hardware that it is
judged on ("all hardware": on the others, too), with several seeds, and judged on the dataset's
held-out networks. What is there already for a model and seed is not computed again; a dataset
that has grown starts the table anew. The peers (:mod:`peers`) need ``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from peers import RandomRanker, Ranker, StockXgb, TensetGbdt, TensetMlp, Tlp
from scipy.stats import t as student

from costlib.data.dataset import Dataset
from costlib.models.baselines.ensemble import EnsembleModel
from costlib.models.baselines.mlp import MlpConfig, MlpModel
from costlib.models.baselines.sequence import SequenceModel
from costlib.models.baselines.statement_gbdt import StatementGbdtModel
from costlib.models.gbdt import GbdtModel, ScheduleGbdtModel
from costlib.training.batches import TrainingData, assemble
from costlib.training.metrics import top_k
from costlib.training.protocol import (
    evaluate_protocol,
    most_measured_hardware,
    network_weights,
)

ROOT = Path(__file__).parent
RESULT = ROOT / "results" / "leaderboard.json"
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
SURE = 0.95


def main() -> None:
    """Fill the table and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ROOT.parent / "datasets" / "zoo")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--markdown", action="store_true", help="print the table and stop")
    arguments = parser.parse_args()
    if arguments.markdown:
        print(markdown(json.loads(arguments.out.read_text())))
        return

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
                model = MODELS[name]()
                learned = None if name.endswith(ALL_HARDWARE) else [hardware]
                training = assemble(dataset, hardware=learned, view=model.view)
                judged = assemble(held_out, hardware=[hardware], view=model.view)
                weights = network_weights(held_out)
                row = _judge(model, training, judged, weights, seed)
                table["models"][name][str(seed)] = row
                table["summary"] = {n: _summary(rows) for n, rows in table["models"].items()}
                arguments.out.write_text(json.dumps(table, indent=1) + "\n")
                figures = "  ".join(f"{f} {row[f]:.4f}" for f in FIGURES)
                print(f"{name:24} seed {seed}  {figures}", flush=True)
    print(markdown(table))


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
            error *= student.ppf((1 + SURE) / 2, len(values) - 1)
            entry["confidence_95"] = [values.mean() - error, values.mean() + error]
        summary[figure] = {k: np.round(v, 4).tolist() for k, v in entry.items()}
    return summary


def markdown(table: dict[str, Any]) -> str:
    """The means over the seeds, best first, and each network's top-1."""
    networks = list(next(iter(next(iter(table["models"].values())).values()))["networks"])
    lines = ["| model | top-1 | top-5 | top-10 | pairs | rank correlation | pooled top-1 | top-5 |"]
    lines[0] += "".join(f" {network} |" for network in networks)
    lines.append("|---" * (8 + len(networks)) + "|")
    ranked = sorted(table["summary"], key=lambda name: -table["summary"][name]["top1"]["mean"])
    for name in ranked:
        rows = list(table["models"][name].values())
        cells = [table["summary"][name][figure]["mean"] for figure in FIGURES]
        cells += [np.mean([row["pooled"][figure] for row in rows]) for figure in ("top1", "top5")]
        cells += [np.mean([row["networks"][n]["top1"] for row in rows]) for n in networks]
        lines.append(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |")
    return "\n".join(lines)


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
