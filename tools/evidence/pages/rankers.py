"""Models of costlib and of the literature side by side: how they rank, and how fast they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tools.evidence.drawing import panels
from tools.evidence.files import read_result
from tools.evidence.markdown import percent, table, with_range
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
    return [
        "## Speed of models",
        f"Candidates that are scored a second, on the heaviest task of {scoring['task']}; *of "
        "stock* is relative to MetaSchedule's model with the replaying of traces that it needs.",
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


def draw_rankers() -> Figure:
    """Draw top-1 and top-5 of all models."""
    summary = read_result("leaderboard")["summary"]
    names = sorted(summary, key=lambda name: summary[name]["top1"]["mean"])
    figure, (panel,) = panels(1, 1, (6.8, 0.22 * len(names) + 0.9))
    for figure_name, colour, words in (("top1", "C0", "top-1"), ("top5", "C1", "top-5")):
        means = np.array([summary[name][figure_name]["mean"] for name in names])
        ranges = np.array([summary[name][figure_name]["range"] for name in names])
        errors = [means - ranges[:, 0], ranges[:, 1] - means]
        panel.errorbar(
            means, range(len(names)), xerr=errors, fmt="o", color=colour, lw=1, label=words
        )
    panel.set_yticks(range(len(names)), names)
    panel.grid(axis="y", lw=0.3)
    panel.set_xlim(0, 1)
    panel.set_xlabel("share of the best throughput, with the range over the seeds")
    panel.legend(loc="lower left")
    return figure
