"""From one hardware to another."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.markdown import percent, pictures, table, with_range
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.pages.between_machines import draw_machine, machine_pictures, sections
from tools.evidence.pages.page import Page, Pictures
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
    return [
        "What a model that was trained elsewhere is worth on hardware that it does not know, and "
        "what measuring there adds. Cross-validation over the tasks: no model has seen the task "
        "that it ranks, on any hardware. *Top-k* is the share of a task's best throughput that the "
        "best of the first k of the ranking reaches, *pairs* the share of program pairs that are "
        "in order.",
        *(sections(found) if (found := result.get("machines")) else []),
        *(_variants(found) if (found := result.get("variants")) else []),
        *measured("transfer"),
    ]


def _variants(result: Mapping[str, Any]) -> list[str]:
    lines = [
        "## Between variants of a machine",
        pictures(
            {name: f"how well each way ranks on {machine(h)}" for name, h in _pictures().items()}
        ),
        f"A model trained on {machine(result['from'])} ranks programs on the same processor with "
        "fewer cores or older instructions. It is used as it is, corrected, or trained together "
        "with what was measured there; models that know nothing but the new hardware stand beside "
        f"it. *A few* records are {percent(result['share'])} of the new hardware's, whole tasks of "
        f"them. Means over {len(result['by_seed'])} seeds, with their range.",
    ]
    for hardware, found in result["to"].items():
        lines += [
            f"### To {machine(hardware)}",
            f"{found['programs']:,} programs of {found['tasks']} tasks.",
            table(
                ["trained", "top-1", "pairs"],
                [
                    [words, *(_ranged(found[way][figure]) for figure in _FIGURES)]
                    for way, words in _WAYS.items()
                ],
            ),
        ]
    return lines


_FIGURES = ("top1", "pairwise_accuracy")


def _ranged(figure: Mapping[str, Any]) -> str:
    lowest, highest = figure["range"]
    return with_range(figure["mean"], lowest, highest, 3)


def _drawn(hardware: str) -> Figure:
    found = read_result("transfer")["variants"]["to"][hardware]
    rows = {
        words: [Mark(found[way]["top1"]["mean"], *found[way]["top1"]["range"])]
        for way, words in _WAYS.items()
    }
    return marks_figure(machine(hardware), rows, ["top-1"], "share of the best throughput")


def _pictures() -> dict[str, str]:
    """The hardware of each picture of a variant, by its file's name."""
    variants = read_result("transfer").get("variants", {}).get("to", {})
    return {f"transfer-{n}.svg": hardware for n, hardware in enumerate(variants, 1)}


def _all_pictures() -> Pictures:
    return {
        **{name: partial(draw_machine, to) for name, to in machine_pictures().items()},
        **{name: partial(_drawn, hardware) for name, hardware in _pictures().items()},
    }


PAGE = Page("transfer", "From one hardware to another", parts, ("transfer",), _all_pictures)
