"""From one hardware to another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.drawing import panels
from tools.evidence.files import read_result
from tools.evidence.markdown import percent, picture, table, with_range
from tools.evidence.pages.page import Page
from tools.evidence.provenance import machine, measured

_WAYS = {
    "zero-shot": "the main hardware's model as it is",
    "fine-tuned, 7 %": "that model, corrected by a few records",
    "together, 7 %": "one model of both, with a few records",
    "together, 100 %": "one model of both, with all records",
    "scratch, 7 %": "from scratch, with a few records",
    "scratch, 100 %": "from scratch, with all records",
}


def parts() -> list[str]:
    """Return the page."""
    result = read_result("transfer")
    lines = [
        picture("transfer.svg", "how well each way ranks on each hardware"),
        f"A model trained on {machine(result['from'])} ranks programs on other hardware of "
        "one processor. It is used as it is, corrected, or trained together with what was "
        "measured there; models that know nothing but the new hardware stand beside it. *A few* "
        f"records are {percent(result['share'])} of the new hardware's, whole tasks of them.",
        "Cross-validation over the tasks: no model has seen the task that it ranks. *Top-1* is the "
        "share of a task's best throughput that the first of the ranking reaches, *pairs* the "
        "share of program pairs that are in order; means over "
        f"{len(result['by_seed'])} seeds, with their range.",
    ]
    for hardware, found in result["to"].items():
        lines += [
            f"## {machine(hardware)}",
            f"{found['programs']:,} programs of {found['tasks']} tasks.",
            table(
                ["trained", "top-1", "pairs"],
                [
                    [words, *(_ranged(found[way][figure]) for figure in _FIGURES)]
                    for way, words in _WAYS.items()
                ],
            ),
        ]
    return [*lines, *measured("transfer")]


_FIGURES = ("top1", "pairwise_accuracy")


def _ranged(figure: Mapping[str, Any]) -> str:
    lowest, highest = figure["range"]
    return with_range(figure["mean"], lowest, highest, 3)


def _drawn() -> Figure:
    result = read_result("transfer")
    figure, axes = panels(len(result["to"]), 1, (2.6, 2.4), sharey=True)
    for panel, (hardware, found) in zip(axes, result["to"].items(), strict=True):
        for number, way in enumerate(reversed(_WAYS)):
            mean = found[way]["top1"]["mean"]
            low, high = found[way]["top1"]["range"]
            panel.errorbar(mean, number, xerr=[[mean - low], [high - mean]], marker="o", color="C0")
        panel.set_title(machine(hardware), fontsize="small")
        panel.grid(axis="x", lw=0.3)
        panel.set_yticks(range(len(_WAYS)), list(reversed(_WAYS.values())))
    figure.supxlabel("top-1: share of the best throughput")
    return figure


PAGE = Page("transfer", "From one hardware to another", parts, {"transfer.svg": _drawn})
