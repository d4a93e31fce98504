"""From one machine to another: what some minutes of measuring are worth where a model is new."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.knowledge import LEAST_GAIN, columns, gain_cells, gain_heads, knowledge_table
from tools.evidence.markdown import in_words, pictures, table, with_error
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page, Pictures
from tools.evidence.provenance import machine, measured, provenance
from tools.evidence.variants_summary import COUNTS

Row = Mapping[str, Any]

_BEFORE = {
    "machine": "the other machines",
    "vendor": "those of another vendor",
    "scratch": "nothing",
}
_FEW = ("1 min", "5 min", "15 min")
_GOAL_WAY = "15 min"
_MINUTES = "15 minutes"
_TAUGHT = {"bundle=adapted": _MINUTES, "bundle=everything": "everything"}
"""What a bundle was taught of the machine, by how the variant begins that searches with it."""
_GOAL_GAIN = 1.05


def parts() -> list[str]:
    """Return the page."""
    result = read_result("transfer")
    found = result["to"]
    model = result["model"]
    return [
        pictures({name: f"top-1 on {machine(to)}" for name, to in _machines().items()}),
        "What a model that was trained elsewhere is worth on a machine that it does not know, and "
        "what measuring there adds. Cross-validation over the tasks: no model has seen the task "
        "that it ranks, on any machine. *Top-k* is the share of a task's best throughput that the "
        "best of the first k of the ranking reaches, *pairs* the share of program pairs that are "
        "in order.",
        "Each machine in turn is the new one. A model knows the other machines, or those of "
        "another vendor alone, and is used as it is (*nothing* was measured on the new one), "
        "fine-tuned on what some minutes of measuring bring, or trained anew with everything that "
        "was measured there. Models that knew nothing before stand beside it. A minute is as many "
        "records as the machine brought in one when the dataset was collected, pauses over "
        f"{result['pause_s']:.0f} seconds left out; they are whole tasks, drawn at random. "
        "Cross-validation over them chooses how a model is fine-tuned, or that it is not.",
        "Where one of the other machines has the same processor, compiled for other instructions, "
        "only the rows of another vendor keep the processor apart. Machines have other numbers of "
        "programs a task, so figures compare within a machine, not between them. Each task counts "
        f"alike. The models have {model['num_trees']} trees, fewer than the shipped ones, and "
        f"one seed; {result['folds']} folds, nearly equal tasks in the same one.",
        "Of what everything gains in top-1 and in pairs over nothing, 15 minutes bring (of less "
        f"than {LEAST_GAIN} no share is given):",
        origin("transfer"),
        table(
            ["new machine", "known before", *gain_heads(_GOAL_WAY)],
            [
                [machine(to), _BEFORE[before], *gain_cells(ways, _GOAL_WAY)]
                for to, row in found.items()
                for before, ways in row["ways"].items()
                if "zero-shot" in ways
            ],
        ),
        *(part for to, row in found.items() for part in _to(to, row)),
        *_adapted(),
        *_searched(),
        *measured("transfer"),
    ]


def _adapted() -> list[str]:
    """Say what adaptations brought that were really made."""
    found = read_result("adaptation").get("machines", {})
    if not found:
        return []
    return [
        "## Adapted for real",
        "`costlib adapt --minutes 15` on machines that the bundle it started from did not know. "
        "It chooses what it measures itself. Figures are of the tasks that it kept "
        "apart, of which no bundle has seen a program. *Everything* is a bundle that was trained "
        "anew with the programs that the dataset holds of the machine.",
        origin("adaptation"),
        table(
            ["machine", "programs", "everything's", "apart", *gain_heads(_GOAL_WAY)],
            [
                [
                    machine(to),
                    row["programs"],
                    row["zoo_programs"],
                    row["apart"],
                    *gain_cells(row["ways"], _GOAL_WAY),
                ]
                for to, row in found.items()
            ],
        ),
    ]


def _searched() -> list[str]:
    """Say what searches gain by a bundle that was adapted to the machine."""
    variants = read_result("variants")
    runs = provenance().benchmarks["variants"].runs if variants else ()
    rows = [
        (run, taught, variants[name])
        for run in runs
        for name in run.variants
        for beginning, taught in _TAUGHT.items()
        if name.startswith(beginning) and name in variants
    ]
    if not rows:
        return []
    counts = [str(count) for count in COUNTS if all(str(count) in row for *_, row in rows)]
    gains = [
        f"{with_error(last['mean'], last['error'])} on {machine(run.machine)} "
        f"({'met' if last['mean'] >= _GOAL_GAIN else '**missed**'})"
        for run, taught, row in rows
        if taught == _MINUTES
        for last in (row[counts[-1]],)
    ]
    return [
        "## Searching with an adapted bundle",
        "`costlib adapt --minutes 15` taught a machine to a bundle that did not know it. Searches "
        "with the adapted bundle race searches with the one it came from, at invented tasks; so do "
        "searches with a bundle that was trained anew with everything that the dataset holds of "
        "the machine, which is what measuring on would bring. The throughputs are relative to "
        "those of the bundle that did not know it, after so many trials, with the standard error "
        f"of the logarithm. After {counts[-1]} trials the adapted bundle gains {in_words(gains)}; "
        f"our goal is {_GOAL_GAIN}.",
        origin("variants", *dict.fromkeys(run.part for run, *_ in rows)),
        table(
            ["machine", "taught", "tasks", *(f"{c} trial{'s' * (c != '1')}" for c in counts)],
            [
                [
                    machine(run.machine),
                    taught,
                    str(row[counts[0]]["tasks"]),
                    *(with_error(row[count]["mean"], row[count]["error"]) for count in counts),
                ]
                for run, taught, row in rows
            ],
        ),
    ]


def _to(to: str, row: Row) -> list[str]:
    others = in_words([machine(one) for one in row["sources"]["machine"]])
    alone = row["sources"].get("vendor")
    vendors = f"; of another vendor: {in_words([machine(one) for one in alone])}" if alone else ""
    return [
        f"## To {machine(to)}",
        f"{row['programs']:,} programs of {row['tasks']} tasks, {row['records_a_second']:.1f} "
        f"records a second. The other machines: {others}{vendors}. An empty cell: the minutes "
        "bring all there is, or there is no model.",
        origin("transfer"),
        knowledge_table(row["ways"], _BEFORE, _FEW),
    ]


def _drawn(to: str) -> Figure:
    """Draw top-1 of each way on a machine."""
    ways = read_result("transfer")["to"][to]["ways"]
    kinds = [before for before in _BEFORE if before in ways]
    rows = {
        words: [_mark(ways[before].get(way)) for before in kinds]
        for way, words in columns(_FEW).items()
        if any(way in ways[before] for before in kinds)
    }
    known = [f"known before: {_BEFORE[before]}" for before in kinds]
    title = f"measured on {machine(to)}"
    return marks_figure(title, rows, known, "share of the best throughput, first of the ranking")


def _mark(found: Row | None) -> Mark | None:
    return None if found is None else Mark(found["top1"], *found["top1_interval"])


def _machines() -> dict[str, str]:
    """The machine of each picture, by its file's name."""
    return {f"transfer-{n}.svg": to for n, to in enumerate(read_result("transfer")["to"], 1)}


def _pictures() -> Pictures:
    return {name: partial(_drawn, to) for name, to in _machines().items()}


PAGE = Page("transfer", "From one machine to another", parts, ("transfer",), _pictures)
