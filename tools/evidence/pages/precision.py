"""Tuned networks in fewer bits, beside engines in the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.in_precisions import IN_WORDS, OURS, PRECISIONS, InPrecision, Precision
from tools.evidence.knowledge import LEAST_GAIN, gain_cells, gain_heads, knowledge_table
from tools.evidence.markdown import in_words, pictures, table, times
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page, Pictures
from tools.evidence.provenance import machine, measured

_TICKS = (0.25, 0.5, 1, 2, 4, 8)
_COMPARED = (
    "Layers and networks are tuned in float32 in all layouts, in bfloat16, and quantised to int8, "
    "with the shipped bundle; decoders that make one token at a time with 8-bit and 4-bit weights, "
    "too. Then each runs beside the engines, in the same precision and with "
    "the same threads. PyTorch computes in float32, or under autocast to bfloat16 where that is "
    "said. An engine that cannot load a network, or computes something else, has no latency."
)

_BEFORE = {
    "float32": "float32",
    "others": "float32 and the other precisions",
    "scratch": "nothing",
}


def parts() -> list[str]:
    """Return the page."""
    result, rows = read_result("precision"), _rows()
    versions = [f"{name} {version}" for name, version in result["versions"].items()]
    return [
        pictures(dict.fromkeys(_pictures(), "how much faster than other engines each case is")),
        f"{_COMPARED} Versions: {in_words(versions)}.",
        "## All of them",
        "How many times as fast the tuned cases are as those of each engine.",
        origin("precision"),
        table(
            ["precision", "against", "geometric mean"],
            [
                [IN_WORDS[precision], title, times(ratio)]
                for precision, ratios in result["by_engine"].items()
                for title, ratio in _with_float32(ratios, result["by_float32"].get(precision))
            ],
        ),
        *(part for precision in _present(rows) for part in _cases(rows, precision)),
        *_problems(rows),
        *(_ranking(found) if (found := read_result("precision_ranking")) else []),
        *measured("precision", "precision_ranking"),
    ]


def _rows() -> list[InPrecision]:
    return [InPrecision.model_validate(row) for row in read_result("precision").get("cases", [])]


def _present(rows: Sequence[InPrecision]) -> list[Precision]:
    return [precision for precision in PRECISIONS if any(r.precision == precision for r in rows)]


def _with_float32(ratios: dict[str, float], wide: float | None) -> list[tuple[str, float]]:
    own = [] if wide is None else [(f"{OURS} in float32", wide)]
    return [*ratios.items(), *own]


def _titles(rows: Sequence[InPrecision]) -> list[str]:
    """Return what runs any of the cases, ours first."""
    return [OURS, *sorted({title for row in rows for title in row.seconds} - {OURS})]


def _cases(rows: Sequence[InPrecision], precision: Precision) -> list[str]:
    some = [row for row in rows if row.precision == precision]
    titles = _titles(some)
    return [
        f"## {'With' if precision.endswith('weights') else 'In'} {IN_WORDS[precision]}",
        "Latencies are in milliseconds; a question mark: the turns did not agree. *Rounding* is "
        "by how much fewer bits change the output, *difference* is that from the same network in "
        "float32 with the same numbers rounded.",
        origin("precision"),
        table(
            ["network", "machine", "threads", "trials", *titles, "difference", "rounding", "of"],
            [
                [
                    f"`{row.name}`",
                    machine(row.hardware),
                    row.threads,
                    row.trials,
                    *(_latency(row, title) for title in titles),
                    f"{row.agreement[OURS]:.1e}" if OURS in row.agreement else "",
                    "" if row.rounding_error is None else f"{row.rounding_error:.1e}",
                    f"{row.largest_output:.2g}",
                ]
                for row in some
            ],
        ),
    ]


def _latency(row: InPrecision, title: str) -> str:
    if title not in row.seconds:
        return ""
    return f"{1e3 * row.seconds[title]:.3g}" + "?" * (title in row.doubtful)


def _problems(rows: Sequence[InPrecision]) -> list[str]:
    lines = [
        [f"`{row.name}`, {IN_WORDS[row.precision]}", title, problem]
        for row in rows
        for title, problem in row.problems.items()
    ]
    if not lines:
        return []
    head = ["case", "engine", "why"]
    return ["## What did not run", origin("precision"), table(head, lines)]


def _ranking(result: Mapping[str, Any]) -> list[str]:
    """What models that know float32 rank like in fewer bits."""
    wide, model = result["float32"], result["model"]
    few = result["few"]
    of_each = [row["ways"]["scratch"] for row in result["to"].values()]
    most = next((way for way in reversed(few) if all(way in ways for ways in of_each)), few[0])
    return [
        "## Ranking programs in fewer bits",
        f"A cost model that knows {wide['programs']:,} float32 programs of {wide['tasks']} tasks, "
        "or those and the other precisions, ranks programs in fewer bits: as it is (it was taught "
        "*nothing* of them), fine-tuned on some whole tasks, or trained anew with everything. "
        "Cross-validation over the tasks; each counts alike. *Top-k* is the share of a task's best "
        "throughput that the best of the first k of the ranking reaches, *pairs* the share of "
        "program pairs in order. The models have "
        f"{model['num_trees']} trees, fewer than the shipped ones. Of what everything gains over "
        f"nothing, {most} bring (of less than {LEAST_GAIN} no share is given):",
        origin("precision_ranking"),
        table(
            ["precision", "known before", *gain_heads(most)],
            [
                [kind, _BEFORE[before], *gain_cells(ways, most)]
                for kind, row in result["to"].items()
                for before, ways in row["ways"].items()
                if "zero-shot" in ways
            ],
        ),
        *(
            part
            for kind, row in result["to"].items()
            for part in (
                f"### With {kind}",
                f"{row['programs']:,} programs of {row['tasks']} tasks. An empty cell: so many are "
                "all there is, or there is no model.",
                origin("precision_ranking"),
                knowledge_table(row["ways"], _BEFORE, few),
            )
        ),
    ]


def _pictures() -> Pictures:
    rows = _rows()
    return {
        f"precision-{precision}.svg": partial(_drawn, rows, precision)
        for precision in _present(rows)
    }


def _drawn(rows: Sequence[InPrecision], precision: Precision) -> Figure:
    some = [row for row in rows if row.precision == precision]
    kinds = [title for title in _titles(some) if title != OURS]
    found = {
        f"{row.name}, {row.threads} threads": [_mark(row, title) for title in kinds] for row in some
    }
    title = f"Times as fast, {IN_WORDS[precision]}"
    return marks_figure(title, found, kinds, "times as fast", ticks=_TICKS, compared=1)


def _mark(row: InPrecision, title: str) -> Mark | None:
    if title not in row.seconds:
        return None
    ratio = row.seconds[title] / row.seconds[OURS]
    return Mark(ratio, ratio, ratio)


PAGE = Page("precision", "In fewer bits", parts, ("precision",), _pictures)
