"""Settings of the search on a surrogate device, and whether real races agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.markdown import percent, pictures, table
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.protocol import CONFIDENCE
from tools.evidence.provenance import machine, measured, provenance
from tools.evidence.simulated import BUDGETS, NETWORKS, PROOF, SCREEN

Row = Mapping[str, Any]

_PARTS = {
    PROOF: "versions that were raced, simulated",
    NETWORKS: "diffusion, simulated",
    SCREEN: "settings that were screened",
    BUDGETS: "networks of the zoo with few trials",
}
"""What they are called in the provenance."""

_GONE = {
    "breeding": "inherited programs had children before a model of schedules guided a task",
    "by_speed": "of its look-alikes those handed on first that did the most operations a second",
}
"""Settings that gained nothing and are no longer there, and what they did."""

_KINDS = ("on the surrogate", "in real races")


def parts() -> list[str]:
    """Return the page."""
    result = read_result("surrogate")
    return [
        pictures({_PICTURE: "what each version reaches on the surrogate and in real races"}),
        "A [surrogate device](../search.md#screening-ideas-on-a-surrogate) answers at once what a "
        "program takes. It is fitted to what the zoo holds of one machine. Searches run on it as "
        "they do on a real machine, and nothing is built.",
        *_proof(result[PROOF]),
        *(_networks(result[NETWORKS]) if NETWORKS in result else []),
        *(_screen(result[SCREEN]) if SCREEN in result else []),
        *(_budgets(result[BUDGETS]) if BUDGETS in result else []),
        *measured("surrogate"),
    ]


def _proof(part: Row) -> list[str]:
    count = _last(part)
    return [
        "## Does it agree with real races?",
        "The versions of the search that [raced each other](ablation.md) search on the surrogate, "
        "at the same tasks. They are put in order by their throughput relative to the full search. "
        "The *correlation* is Spearman's, of the surrogate's order and that of the races. "
        f"The interval holds it with {percent(CONFIDENCE)} confidence, tasks and seeds drawn anew "
        "on both sides. *Halves* is the correlation of one half of the races with the other half, "
        "as chance has its share in races, too.",
        origin("surrogate", _PARTS[PROOF]),
        origin("ablation", "with a bundle"),
        _agreements(part),
        _verdict(part, count),
        "## How good is it?",
        f"It stands for {machine(part['hardware'])}. It was judged by cross-validation, on "
        "programs that its trees had not seen.",
        origin("surrogate", _PARTS[PROOF]),
        _fit(part["fit"]),
        f"There were {part['searches']:,} searches of {part['tasks']} tasks. The median search of "
        f"{count} trials took {part['seconds']:.0f} seconds, on a machine that was busy with other "
        "work.",
        "## What each version reaches",
        f"Throughputs after {count} trials, relative to the full search, with their intervals.",
        origin("surrogate", _PARTS[PROOF]),
        origin("ablation", "with a bundle"),
        _settings(part, count),
    ]


def _networks(part: Row) -> list[str]:
    count = _last(part)
    return [
        "## Diffusion, on whole networks",
        f"The same with and without diffusion, with {count} trials a task.",
        origin("surrogate", _PARTS[NETWORKS]),
        _settings(part, count),
    ]


def _screen(part: Row) -> list[str]:
    return [
        "## Settings that were screened",
        f"At {part['tasks']} tasks of the zoo that no benchmark holds.",
        *_by_trials(part, SCREEN),
    ]


def _budgets(part: Row) -> list[str]:
    return [
        "## Whole networks with few trials",
        f"At {part['tasks']} networks of the zoo that no benchmark holds.",
        *_by_trials(part, BUDGETS),
    ]


def _by_trials(part: Row, name: str) -> list[str]:
    settings = part["settings"]
    names = sorted({name for found in settings.values() for name in found})
    return [
        "Batches are as `tune` takes them with so many trials. Settings that begin with *cold* "
        "have no bundle, and are compared with the search without one. "
        "Throughputs after so many trials a task; in brackets, the interval and the number of "
        "searches.",
        origin("surrogate", _PARTS[name]),
        table(
            ["setting", *(f"after {trials}" for trials in settings)],
            [[f"`{n}`", *(_at(found.get(n)) for found in settings.values())] for n in names],
        ),
        *(
            f"`{field}` is gone, as no gain could be told from chance: {words}."
            for field, words in _GONE.items()
            if any(f"{field}=" in name for name in names)
        ),
    ]


def _at(one: Row | None) -> str:
    if one is None:
        return ""
    ratio, interval = _with_interval(one)
    return f"{ratio} ({', '.join(filter(None, [interval, str(one['cases'])]))})"


def _last(part: Row) -> str:
    """Return the number of trials that most settings were compared after, the largest one."""
    most = max(map(len, part["settings"].values()))
    return str(max(int(c) for c, found in part["settings"].items() if len(found) == most))


def _agreements(part: Row) -> str:
    return table(
        ["trials", "settings", "races", "correlation", "interval", "halves", "plain loop", "full"],
        [
            [
                int(count),
                found["settings"],
                found["races"],
                f"{found['spearman']:.2f}",
                f"{found['low']:.2f} to {found['high']:.2f}",
                f"{found['halves']:.2f}",
                *(_within(found, loop) for loop in ("plain", "full")),
            ]
            for count, found in part["agreement"].items()
        ],
    )


def _within(found: Row, loop: str) -> str:
    return f"{found['within'][loop]:.2f}" if loop in found["within"] else ""


def _verdict(part: Row, count: str) -> str:
    found, goal = part["agreement"][count], provenance().goals.surrogate_correlation
    met = "met" if found["spearman"] >= goal else "missed"
    return (
        f"The goal, at least {goal}, is {met} after {count} trials. The last columns are the "
        "correlations among the versions of the plain loop alone, and among those of the full "
        "search, which differ by less. Versions whose part only acts later search alike so far, "
        "and share a rank on the surrogate; in races chance puts them in some order."
    )


def _fit(fit: Row) -> str:
    return table(
        ["", "on programs that it has not seen"],
        [
            ["tasks", fit["tasks"]],
            ["programs", fit["programs"]],
            ["rank correlation within a task", f"{fit['rank_correlation']:.2f}"],
            ["top-1", f"{fit['top1']:.2f}"],
            ["top-5", f"{fit['top5']:.2f}"],
            ["unexplained, of the logarithm", f"{fit['unexplained']:.2f}"],
            ["the same near the best", f"{fit['unexplained_near_best']:.2f}"],
        ],
    )


def _settings(part: Row, count: str) -> str:
    real = part["agreement"].get(count, {}).get("real", {})
    rows = [
        [
            f"`{name}`",
            one["cases"],
            *_with_interval(one),
            *(_with_interval(real[name]) if name in real else ("", "") if real else ()),
        ]
        for name, one in _sorted(part["settings"][count])
    ]
    head = ["setting", "searches", _KINDS[0], "interval"]
    return table([*head, *([_KINDS[1], "interval"] if real else [])], rows)


def _with_interval(one: Row) -> tuple[str, str]:
    interval = f"{one['low']:.2f} to {one['high']:.2f}" if "low" in one else ""
    return f"{one['ratio']:.2f}", interval


def _sorted(settings: Row) -> list[tuple[str, Row]]:
    return sorted(settings.items(), key=lambda entry: -entry[1]["ratio"])


def _drawn() -> Figure:
    part = read_result("surrogate")[PROOF]
    count = _last(part)
    real = part["agreement"][count]["real"]
    rows = {
        name: [_mark(one), _mark(real[name])]
        for name, one in _sorted(part["settings"][count])
        if name in real and "low" in one
    }
    return marks_figure(
        f"After {count} trials", rows, _KINDS, "throughput / that of the full search", compared=1
    )


def _mark(one: Row) -> Mark:
    return Mark(one["ratio"], one["low"], one["high"])


_PICTURE = "surrogate.svg"

PAGE = Page(
    "surrogate",
    "Screening on a surrogate device",
    parts,
    ("surrogate",),
    lambda: {_PICTURE: _drawn},
)
