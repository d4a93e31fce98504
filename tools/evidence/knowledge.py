"""Tables of what models that knew something before rank like, by what they were taught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.evidence.markdown import percent, table

Ways = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Figures by what was known before and by what was taught, see
:func:`tools.benchmarks.known_before.judged`."""

_FIGURES = {"top1": "top-1", "top5": "top-5", "pairwise_accuracy": "pairs"}
_NOTHING, _EVERYTHING = "zero-shot", "everything"

LEAST_GAIN = 0.01
"""Of everything over nothing; of a smaller one a share means nothing."""


def columns(few: Sequence[str]) -> dict[str, str]:
    """Return what was taught, in words: nothing, so much, everything."""
    return {_NOTHING: "nothing", **{way: way for way in few}, _EVERYTHING: "everything"}


def knowledge_table(ways: Ways, before: Mapping[str, str], few: Sequence[str]) -> str:
    """Return a row for each figure of each model.

    Parameters
    ----------
    ways
        The figures.
    before
        What models knew before, in words.
    few
        What they were taught between nothing and everything.
    """
    taught = columns(few)
    return table(
        ["known before", "figure", *taught.values()],
        [
            [before[known], name, *(cell(found.get(way, {}).get(figure)) for way in taught)]
            for known, found in ways.items()
            for figure, name in _FIGURES.items()
        ],
    )


def gain_heads(way: str) -> list[str]:
    """Return the heads of :func:`gain_cells`."""
    names = ("top-1, nothing", way, "everything", "of the gain")
    return [*names, "pairs, nothing", *names[1:]]


def gain_cells(found: Mapping[str, Mapping[str, Any]], way: str) -> list[str]:
    """Return what one way brings of everything's gain over nothing, if that is not tiny."""
    cells = []
    for figure in ("top1", "pairwise_accuracy"):
        nothing, everything = found[_NOTHING][figure], found[_EVERYTHING][figure]
        few = found[way][figure] if way in found else None
        cells += [cell(nothing), cell(few), cell(everything)]
        gained = few is not None and everything - nothing >= LEAST_GAIN
        cells.append(percent((few - nothing) / (everything - nothing)) if gained else "")
    return cells


def cell(value: float | None) -> str:
    """Return a figure, or nothing."""
    return "" if value is None else f"{value:.3f}"
