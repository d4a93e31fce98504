"""Models of costlib and of the literature side by side: how they rank, and how fast they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from costlib.report.ranking import ranking_figure
from costlib.workloads.title import fused_title
from tools.evidence.files import read_result
from tools.evidence.markdown import percent, table, with_range
from tools.evidence.origins import origin
from tools.evidence.protocol import CONFIDENCE
from tools.evidence.provenance import machine

Row = Mapping[str, Any]

_FIGURES = ("top1", "top5", "top10", "pairwise_accuracy", "rank_correlation")


def leaderboard(result: Row) -> list[str]:
    """Return the section on models of the literature."""
    data, summary = result["data"], result["summary"]
    names = sorted(summary, key=lambda name: -summary[name]["top1"]["mean"])
    networks = list(next(iter(result["models"][names[0]].values()))["networks"])
    return [
        "## Beside models of the literature",
        f"All models are trained on the programs of `datasets/{data['dataset']}` that were "
        f"measured on {machine(data['hardware'])}; *all hardware* sees those of the other "
        f"machines, too, {data['programs']:,} in all. They are judged on the held-out networks, "
        f"{data['held_out_programs']:,} programs. Peers have the settings that were published and "
        "get costlib's features and labels. In brackets is the interval that holds the mean of "
        f"all seeds with a confidence of {percent(CONFIDENCE)}; a model without one gives the same "
        "for each seed, or has one.",
        origin("leaderboard"),
        table(
            ["model", "seeds", "top-1", "top-5", "top-10", "pairs", "rank correlation", "pooled"],
            [
                [
                    name,
                    len(result["models"][name]),
                    _with_confidence(summary[name]["top1"]),
                    *(f"{summary[name][figure]['mean']:.3f}" for figure in _FIGURES[1:]),
                    f"{np.mean([row['pooled']['top1'] for row in _seeds(result, name)]):.3f}",
                ]
                for name in names
            ],
        ),
        "Top-1 by network:",
        table(
            ["model", *(f"`{network}`" for network in networks)],
            [
                [
                    name,
                    *(
                        f"{np.mean([r['networks'][n]['top1'] for r in _seeds(result, name)]):.3f}"
                        for n in networks
                    ),
                ]
                for name in names
            ],
        ),
    ]


def _seeds(result: Row, name: str) -> list[Row]:
    return list(result["models"][name].values())


def _with_confidence(figure: Row) -> str:
    low, high = figure.get("confidence_95", (figure["mean"], figure["mean"]))
    return with_range(figure["mean"], low, high, digits=3)


def speed(result: Row) -> list[str]:
    """Return the section on how fast models score and train."""
    scoring = result["scoring"]
    relative = scoring["relative_to_stock_from_traces"]
    network, _, task = scoring["task"].partition(": ")
    return [
        "## Speed of models",
        f"Candidates that are scored a second, on the heaviest task of `{network}`, "
        f"{fused_title(task, ())}; *of stock* is relative to MetaSchedule's model with the "
        "replaying of traces that it needs.",
        origin("model_speed"),
        table(
            ["way", "a second", "of stock"],
            [
                [name, rate, f"{relative[name]:.2f}"]
                for name, rate in scoring["programs_per_second"].items()
            ],
        ),
        "Training, each model in a process of its own; memory is what it takes above the data.",
        table(
            ["model", "programs", "seconds", "programs a second", "MiB"],
            [
                [
                    model,
                    row["programs"],
                    f"{row['seconds']:.1f}",
                    row["programs_per_second"],
                    row["peak_mib_above_data"],
                ]
                for rows in result["training"].values()
                for model, row in rows.items()
            ],
        ),
    ]


def draw_rankers(k: int) -> Figure:
    """Draw a figure of the first k of all models, with its range over the seeds."""
    summary, figure = read_result("leaderboard")["summary"], f"top{k}"
    names = sorted(summary, key=lambda name: -summary[name][figure]["mean"])
    random = summary["random"][figure]["mean"]
    parts = {
        name: {
            figure: summary[name][figure]["mean"],
            f"{figure}_interval": summary[name][figure]["range"],
            f"random_{figure}": random,
        }
        for name in names
        if name != "random"
    }
    return ranking_figure(parts, k)
