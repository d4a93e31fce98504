"""How well the shipped bundles rank, and where the ranking goes wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from costlib.report.figures import finish, fixed_ticks, panel, plain_ticks, tip
from tools.evidence.files import REPOSITORY, read_result
from tools.evidence.markdown import percent, pictures, table
from tools.evidence.origins import origin
from tools.evidence.pages.ceiling import ceiling
from tools.evidence.pages.objectives import objectives
from tools.evidence.pages.page import Page
from tools.evidence.pages.rankers import draw_rankers, leaderboard, speed
from tools.evidence.provenance import machine, measured, provenance

Row = Mapping[str, Any]

BUNDLES = ("cpu-gbdt", "cpu-multi")
_METRICS = ("top1", "top5", "top10", "pairwise_accuracy")
_CURVES = {"tasks": "of the tasks", "programs_per_task": "of each task's programs"}


def manifest(bundle: str) -> Any:
    """Return what ``bundle.json`` of a shipped bundle says."""
    return json.loads((REPOSITORY / "pretrained" / bundle / "bundle.json").read_text())


def parts() -> list[str]:
    """Return the page."""
    return [
        pictures({name: f"top-{k} of each model" for name, k in _MODELS.items()}),
        "A model ranks the measured programs of tasks that it has not seen. *Top-k* is the "
        "throughput of the best of its first k programs, as a share of the best throughput that "
        "was measured of the task. *Pairs* is the share of a task's pairs of programs that are in "
        "order. Tasks are weighted by their calls and their time, networks alike; *pooled* counts "
        "all tasks once.",
        "## The shipped bundles",
        *_bundles(),
        *ceiling(_of_bundles()),
        *leaderboard(read_result("leaderboard")),
        *(_wrong(found) if (found := read_result("ranking")) else []),
        *(objectives(found) if (found := read_result("objectives")) else []),
        *(speed(found) if (found := read_result("model_speed")) else []),
        *measured("bundles", "ceiling", "leaderboard", "ranking", "objectives", "model_speed"),
    ]


def _wrong(result: Row) -> list[str]:
    """Return the sections on what the shipped model ranks worst, and why."""
    return [
        "## Where the ranking goes wrong",
        f"The model that is shipped, on {result['programs']:,} training programs of "
        f"{result['tasks']} tasks on {machine(result['hardware'])}, by cross-validation over the "
        "tasks.",
        pictures(dict(zip(_LEARNT, ("learning curves", "calibration"), strict=True))),
        *_learning_curves(result["learning_curves"]),
        "### Operators",
        "How much slower than the best program the first choice is, and the best of the first "
        "five, on the average over an operator's tasks.",
        origin("ranking"),
        table(
            ["operator", "tasks", "first choice", "best of five", "pairs"],
            [
                [
                    row["operator"],
                    row["tasks"],
                    f"{row['slow_down_of_first_choice']:.2f}",
                    f"{row['slow_down_of_best_of_five']:.2f}",
                    f"{row['pairwise_accuracy']:.3f}",
                ]
                for row in result["operators"]
            ],
        ),
        "### Features",
        "The model without a group of its features: *stores* are MetaSchedule's, *nests* describe "
        "loop nests.",
        origin("ranking"),
        table(
            ["features", "top-1", "top-5", "pairs"],
            [[name, *_three(row)] for name, row in result["feature_groups"].items()],
        ),
        "### Calibration",
        "The share of the ensemble's errors that lie within the interval that should hold a share "
        "of them, on the held-out networks.",
        origin("ranking"),
        table(
            ["expected", *map(percent, result["calibration"]["level"])],
            [["found", *map(percent, result["calibration"]["covered"])]],
        ),
    ]


def _three(row: Row) -> list[str]:
    return [f"{row[metric]:.3f}" for metric in ("top1", "top5", "pairwise_accuracy")]


def _bundles() -> list[str]:
    goal = provenance().goals.ranking_top1
    manifests = {name: manifest(name) for name in BUNDLES}
    shipped = manifests[BUNDLES[0]]["metrics"]
    rows = [
        [f"`{network}`", found["tasks"], *_figures(found)]
        for network, found in shipped["networks"].items()
    ]
    rows += [
        ["**mean of the networks**", shipped["tasks"], *_figures(shipped)],
        ["pooled", shipped["pooled"]["tasks"], *_figures(shipped["pooled"])],
    ]
    return [
        f"Each is judged on {shipped['programs']:,} programs of the held-out networks on "
        f"{machine(shipped['hardware'])}; `costlib evaluate` shows these figures. Our goal for "
        f"top-1 is {goal}.",
        origin("bundles"),
        table(
            ["bundle", "trained on", "kinds of hardware", "top-1", "top-5", "top-10", "pairs"],
            [
                [
                    f"`{name}`{words}",
                    f"{found['trained_on']['programs']:,} programs of "
                    f"{found['trained_on']['tasks']} tasks",
                    len(found["hardware"]),
                    *(f"{metrics[metric]:.3f}" for metric in _METRICS),
                ]
                for name, found in manifests.items()
                for words, metrics in (
                    ("", found["metrics"]),
                    (", its model of schedules", found["metrics"]["draft"]),
                )
            ],
        ),
        f"`{BUNDLES[0]}` by network, beside programs that are picked at random:",
        table(
            ["network", "tasks", "top-1", "top-5", "top-10", "pairs", "random top-1", "top-5"],
            rows,
        ),
        *_directions(shipped["directions"]),
    ]


def _of_bundles() -> dict[str, Row]:
    """Return the metrics of the shipped bundles' models that rank exactly."""
    return {f"`{name}`": manifest(name)["metrics"] for name in BUNDLES}


def _figures(metrics: Row) -> list[str]:
    names = (*_METRICS, "random_top1", "random_top5")
    return [f"{metrics[name]:.3f}" for name in names]


def _directions(found: Row) -> list[str]:
    return [
        "Its classifier of mutation directions is judged on "
        f"{found['programs']} programs of tasks that it was not shown. *Change* is what a mutation "
        "does to the throughput, as a geometric mean; *best named* how often the direction is the "
        "best one.",
        table(
            ["a mutation", "change", "best named"],
            [
                [
                    "in the direction with the highest expected gain",
                    _factor(found["gain"]),
                    percent(found["accuracy"], 1),
                ],
                [
                    "by MetaSchedule's probabilities",
                    _factor(found["stock_gain"]),
                    percent(found["stock_accuracy"], 1),
                ],
                ["in the best direction", _factor(found["best_gain"]), ""],
                ["in a direction at random", "", percent(found["chance"], 1)],
            ],
        ),
    ]


def _factor(log: float) -> str:
    return f"{np.exp(log):.3f}"


def _learning_curves(curves: Row) -> list[str]:
    return [
        "### Learning curves",
        "With a share of the tasks, or of the programs of each task:",
        origin("ranking"),
        table(
            ["share", *(f"{m}, {words}" for words in _CURVES.values() for m in _SHOWN)],
            [
                [
                    percent(float(part), 1),
                    *(text for name in _CURVES for text in _three(curves[name][part])),
                ]
                for part in curves["tasks"]
            ],
        ),
    ]


_SHOWN = ("top-1", "top-5", "pairs")


def _learning() -> Figure:
    figure, axes = panel(2.2)
    for name, style in (("tasks", "o-"), ("programs_per_task", "s--")):
        points = read_result("ranking")["learning_curves"][name]
        shares = [100 * float(part) for part in points]
        for metric, colour in (("top1", "C0"), ("top5", "C1")):
            values = [row[metric] for row in points.values()]
            label = f"{metric.replace('top', 'top-')}, share {_CURVES[name]}"
            (line,) = axes.plot(shares, values, style, ms=4, lw=1.2, color=colour, label=label)
            tip(line, *(f"{label}: {value:.3f}" for value in values))
    axes.set_xscale("log")
    fixed_ticks(axes.xaxis, shares)
    plain_ticks(axes.yaxis)
    axes.set(xlabel="% of the training data", ylabel="share of the best")
    finish(axes, "learning curves")
    return figure


def _calibration() -> Figure:
    found = read_result("ranking")["calibration"]
    figure, axes = panel(2.2)
    axes.plot([0, 1], [0, 1], "--", color="tab:gray", lw=1, label="as sure as right")
    (line,) = axes.plot(found["level"], found["covered"], "o-", ms=4, label="ensemble")
    tip(line, *(f"{100 * covered:.0f} % within it" for covered in found["covered"]))
    plain_ticks(axes.xaxis, axes.yaxis)
    axes.set(xlabel="expected within the interval", ylabel="found within it")
    finish(axes, "calibration on the held-out networks")
    return figure


_MODELS = {f"ranking-models-top{k}.svg": k for k in (1, 5)}
_LEARNT = {"ranking-learning.svg": _learning, "ranking-calibration.svg": _calibration}

PAGE = Page(
    "ranking",
    "Ranking programs",
    parts,
    ("leaderboard",),
    lambda: {
        **{name: partial(draw_rankers, k) for name, k in _MODELS.items()},
        **(_LEARNT if read_result("ranking") else {}),
    },
)
