"""What knowing in which direction to change a program would be worth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.directions_summary import (
    ALL_KNOWN,
    ALWAYS,
    EIGHT,
    FINE,
    LEVEL,
    PAYS,
    RANDOM,
    TIE,
    TODAY,
)
from tools.evidence.directions_summary import ORACLE as NAMED
from tools.evidence.families import NATIVE, SURROGATE
from tools.evidence.files import read_result
from tools.evidence.markdown import percent, pictures, share, table, with_range
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.protocol import CONFIDENCE
from tools.evidence.provenance import machine, measured, provenance
from tools.evidence.simulated import ORACLE
from tools.evidence.simulated_summary import COLD

Row = Mapping[str, Any]

_DIGITS = 3

PARTS = {
    NATIVE: "families, measured",
    SURROGATE: "families, simulated",
    ORACLE: "searches with an oracle, simulated",
}
"""What they are called in the provenance."""

_DEVICES = {NATIVE: "measured", SURROGATE: "on the surrogate"}

_KINDS = {
    FINE: "from level to level",
    LEVEL: "to a level",
    TODAY: "spatial or reduction",
}

_SIDES = {
    NAMED: "an oracle",
    ALL_KNOWN: "all known",
    ALWAYS: "one direction for all",
    RANDOM: "any direction",
}


def parts() -> list[str]:
    """Return the page."""
    return [
        pictures({_PICTURE: "what naming directions gains over MetaSchedule's probabilities"}),
        "The classifier of directions says in which direction to change a program. This page says "
        "what a perfect one would gain, from children of programs near the best in every "
        "direction.",
        *_short(),
        *_bound(),
        *_named(),
        *_each(),
        *_searches(),
        *measured("directions"),
    ]


def _results() -> Iterator[tuple[str, str, Row]]:
    """Yield device, hardware and what was found, by the kind of directions."""
    result = read_result("directions")
    for device in _DEVICES:
        for hardware, found in result.get(device, {}).items():
            yield device, hardware, found


def _searched() -> Mapping[str, Row]:
    """Return by trials what searches with an oracle gain."""
    settings = read_result("surrogate").get(ORACLE, {}).get("settings", {})
    return {
        trials: {name: one for name, one in found.items() if name != COLD}
        for trials, found in settings.items()
    }


def _short() -> list[str]:
    goal = provenance().goals.directions_gain
    bounds = [
        (f"{_SIDES[side]}, {_DEVICES[device]}, {machine(hardware)}", found[FINE]["gain"][side])
        for device, hardware, found in _results()
        for side in (NAMED, ALWAYS)
    ]
    told = [
        (f"told to the search, `{name}` with {trials} trials", one)
        for trials, settings in _searched().items()
        for name, one in settings.items()
        if "low" in one
    ]
    lines = []
    for what, one in [*bounds, *told]:
        gain = with_range(one["ratio"], one["low"], one["high"], _DIGITS)
        lines.append(f"- {what}: {gain}, {_verdict(one, goal)}")
    real = any(device == NATIVE for device, _, _ in _results())
    return [
        "## In short",
        f"Directions are worth building on where an oracle gains {percent(goal - 1)} or more over "
        "MetaSchedule's probabilities; `directions` is off by default.",
        *dict.fromkeys(origin("directions", PARTS[device]) for device, _, _ in _results()),
        *([origin("directions", PARTS[ORACLE])] if told else []),
        "\n".join(lines),
        *([] if real else ["Nothing of this was measured on a real machine yet."]),
    ]


def _verdict(one: Row, goal: float) -> str:
    if one["low"] >= goal:
        return "worth it"
    if one["high"] < goal:
        return "too little"
    return (
        "more than that, but not told from less"
        if one["ratio"] >= goal
        else ("less than that, but not told from more")
    )


def _bound() -> list[str]:
    rows = [
        [
            _DEVICES[device],
            machine(hardware),
            words,
            found[kind]["parents"],
            f"{found[kind]['directions']:.1f}",
            *(_ratio(found[kind]["gain"][side]) for side in _SIDES),
            _ratio(found[kind]["gain"][NAMED], "kept_"),
        ]
        for device, hardware, found in _results()
        for kind, words in _KINDS.items()
        if found[kind]
    ]
    head = ["", "machine", "tile sizes by", "parents", "directions", *_SIDES.values()]
    return [
        "## What an oracle gains",
        "Parents are programs that took at most 1.25 times as long as the best record of their "
        "task; the tasks are of the zoo, none is held out. Each has up to 16 children in every "
        "direction, each one change away, all of them valid and distinct as code. Most directions "
        "have fewer.",
        f"Half of a direction's children, {EIGHT} at most, are shown to the oracle. It names the "
        "direction with the best child, and gets the best of that direction's other half, so that "
        "luck does not count as knowledge. Where that has fewer than "
        f"{EIGHT}, others fill it up. The columns have throughputs relative to the best of {EIGHT} "
        "children of the same half that are drawn by MetaSchedule's probabilities: of what the "
        f"oracle gets; of the best of {EIGHT} of the direction with the best ones, *all known*; of "
        "the *one* direction that gains most at other tasks; and of children of *any* "
        "direction, all alike. No classifier gains more than one that knows all children, but what "
        "that gains is partly luck: it has seen what it is judged by. "
        "The last column is the oracle if a parent is kept that no child beats, as a search does. "
        f"In brackets, what holds the mean over parents with {percent(CONFIDENCE)} confidence, "
        "tasks drawn anew.",
        _told_apart(),
        *_origins(),
        table([*head, "the parent kept"], rows),
        *(
            f"{_sentence(_DEVICES[device])} ({machine(hardware)}) "
            f"{percent(found[FINE]['better'])} of the parents had a faster child, and the best of "
            f"all children took {share(found[FINE]['parent_of_best'])} of its parent's time "
            f"(geometric mean); {found[FINE]['ran']:,} of {found[FINE]['children']:,} children ran."
            for device, hardware, found in _results()
        ),
        *_caution(),
    ]


def _caution() -> list[str]:
    few = (
        "A direction has few children near the best. The oracle, which sees half of them, has then "
        "often seen the best one, and so does not get it: it gains a little less than one who "
        "knows directions and nothing else. One that knows all gains more, but what it knows are "
        "the children themselves, and that is what the models are for that score each of them."
    )
    if not any(device == SURROGATE for device, _, _ in _results()):
        return [few]
    return [
        few,
        "On the surrogate, what its trees leave unexplained is drawn anew for each program, so "
        "luck counts for more there than in truth.",
    ]


def _told_apart() -> str:
    return (
        "Directions are told apart in three ways: tile sizes *from level to level*, where the "
        "innermost level of a loop is what is vectorised, the one around it is the middle, and "
        "all others are outer; by the level that a factor moves *to*; and as the classifier does, "
        "by *spatial or reduction* loops alone. Unrolling, parallel loops and compute locations "
        "are directions of their own in all three."
    )


def _named() -> list[str]:
    rows = [
        [
            _DEVICES[device],
            machine(hardware),
            words,
            *(percent(found[kind][name]) for name in ("right", "by_chance", "tied")),
            *(percent(found[kind][name]) for name in ("tied_always", "tied_by_chance")),
        ]
        for device, hardware, found in _results()
        for kind, words in _KINDS.items()
        if found[kind]
    ]
    tie = f"within {percent(TIE)}"
    return [
        "## How often the best direction can be named",
        "The direction that the oracle names is the *right* one, with the best child of the other "
        f"half, so often; or its best child is {tie} of that. This is the ceiling of a classifier "
        f"that knows {EIGHT} children of a parent in each direction. Where *one* direction for all "
        "is right more often, other parents say more about a parent than its own children do.",
        *_origins(),
        table(
            [
                *("", "machine", "tile sizes by", "right", "by chance", f"right {tie}"),
                *("one for all", "by chance"),
            ],
            rows,
        ),
    ]


def _each() -> list[str]:
    lines = []
    for device, hardware, found in _results():
        rows = [
            [
                name,
                one["parents"],
                f"{one['children']:.1f}",
                percent(one["stock"]),
                percent(one["pays"]),
                percent(one["named"]),
                f"{one['gain']:.2f}",
            ]
            for name, one in sorted(
                found[FINE]["by_direction"].items(), key=lambda entry: -entry[1]["gain"]
            )
        ]
        lines += [
            f"### {_sentence(_DEVICES[device])}, {machine(hardware)}",
            f"Of {found[FINE]['parents']} parents, with {found[FINE]['ran']:,} children that ran.",
            origin("directions", PARTS[device], hardware=hardware if device == NATIVE else None),
            table(
                ["direction", "parents", "children", "stock", "pays", "named", "throughput"], rows
            ),
        ]
    return [
        "## What each direction is worth",
        "The parents that have it and the children of each; the share of MetaSchedule's changes "
        f"that are in it; how many of its children gain {percent(PAYS)} or more; how often the "
        f"oracle names it; and the best of {EIGHT} of its children relative to the best of "
        f"{EIGHT} that are drawn as MetaSchedule does.",
        *lines,
    ]


def _searches() -> list[str]:
    settings = _searched()
    if not settings:
        return []
    part = read_result("surrogate")[ORACLE]
    names = sorted({name for found in settings.values() for name in found})
    return [
        "## Told to the search",
        f"Searches of {part['tasks']} tasks of the zoo that no benchmark holds, on the "
        "[surrogate](surrogate.md), whose parents are changed in nine of ten cases in the "
        f"direction that an oracle names. For each parent it looks at {EIGHT} children in each "
        "direction, as the classifier tells them apart. *truth* asks the surrogate without noise, "
        "for at most 16 parents of a generation, the best first; *draft* asks the model of "
        "schedules, which costs no trial. "
        f"Throughputs after so many trials relative to the same search with MetaSchedule's "
        f"probabilities; *{COLD}* is without a bundle, else it is the shipped one, which knows "
        "these tasks. In brackets, the interval and the number of searches.",
        origin("directions", PARTS[ORACLE]),
        table(
            ["setting", *(f"after {trials}" for trials in settings)],
            [[f"`{n}`", *(_cell(found.get(n)) for found in settings.values())] for n in names],
        ),
    ]


def _cell(one: Row | None) -> str:
    if one is None:
        return ""
    interval = f"{one['low']:.2f} to {one['high']:.2f}, " if "low" in one else ""
    return f"{one['ratio']:.2f} ({interval}{one['cases']})"


def _ratio(gain: Row, prefix: str = "") -> str:
    ratio, low, high = (gain[f"{prefix}{name}"] for name in ("ratio", "low", "high"))
    return with_range(ratio, low, high, _DIGITS)


def _origins() -> list[str]:
    return list(dict.fromkeys(origin("directions", PARTS[d]) for d, _, _ in _results()))


def _sentence(words: str) -> str:
    return words[0].upper() + words[1:]


def _drawn() -> Figure:
    found = [(device, hardware, one[FINE]) for device, hardware, one in _results()]
    rows = {
        words: [_mark(one["gain"][side]) for _, _, one in found] for side, words in _SIDES.items()
    }
    kinds = [f"{_DEVICES[device]}, {machine(hardware)}" for device, hardware, _ in found]
    return marks_figure(
        "Who names the direction",
        rows,
        kinds,
        "throughput / that with MetaSchedule's probabilities",
        compared=1,
    )


def _mark(gain: Row) -> Mark:
    return Mark(gain["ratio"], gain["low"], gain["high"])


_PICTURE = "directions.svg"

PAGE = Page(
    "directions",
    "Directions of change",
    parts,
    ("directions",),
    lambda: {_PICTURE: _drawn},
)
