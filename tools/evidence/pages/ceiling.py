"""How good a ranking of the held-out tasks can be, given how far measurements differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import percent, table, with_range
from tools.evidence.origins import origin

Row = Mapping[str, Any]

_NOISIEST = 5


def share_of_ceiling(metrics: Row, figure: str) -> float | None:
    """Return a model's figure as a share of the ceiling.

    Parameters
    ----------
    metrics
        Of a model on the held-out networks, as its manifest has them.
    figure
        ``"top1"`` or ``"top5"``.

    Returns
    -------
    float or None
        ``None`` unless the ceiling was measured of the same tasks on the same hardware.
    """
    found = read_result("ceiling")
    if not found or any(found[name] != metrics[name] for name in ("tasks", "hardware")):
        return None
    return float(metrics[figure] / found["ceiling"][figure])


def ceiling(bundles: Mapping[str, Row]) -> list[str]:
    """Return the section on it.

    Parameters
    ----------
    bundles
        The metrics of models that are stated as shares of it, by their names.
    """
    found = read_result("ceiling")
    if not found:
        return [_HEADING, _UNMEASURED]
    noise, off = found["noise"], found["truth_of_label"]
    return [
        _HEADING,
        "A label is one measurement, and two of the same program differ. So the program with the "
        "best label is not always the fastest one, and a model that knew each program's true "
        "latency would still not reach 1. To see what it would reach, the "
        f"{found['top']} best programs of each of {found['tasks']} held-out tasks, "
        f"{found['programs']:,} in all, were built anew and looked at {found['looks']} times each, "
        f"the last look {found['minutes_from_first_to_last']:g} minutes after the first. The "
        "median of a program's looks counts as its true latency. The labels stay as they are.",
        "The *ceiling* is the expected figure, judged by the committed labels, of somebody who "
        f"knows the true latency of these {found['top']} programs of each task, and that none of "
        "the others is better. A program that only looked fast is among them as well, and one "
        "that only looked slow is not: of all programs of a task, even perfect knowledge would get "
        "a little less. The *left-out look* takes the selection away: it chooses by the other "
        "looks, and is judged by one that neither chose these programs nor ordered them. *The "
        "labels* turns it round: programs in the order of their labels, judged by the true "
        "latencies.",
        origin("ceiling"),
        table(
            ["order", "judged by", "top-1", "top-5"],
            [
                ["**ceiling**: the true latency", "the labels", *_both(found["ceiling"])],
                ["the other looks", "a left-out look", *_both(found["left_out_look"])],
                ["the labels", "the true latency", *_both(found["labels"])],
            ],
        ),
        "In brackets is where the figure lies with a confidence of 95 %, tasks drawn anew. Looks "
        f"at a program differ by {_spread(noise['median'])} (one standard deviation, "
        f"the median of the tasks; {_spread(noise['p90'])} for one task in ten, "
        f"{_spread(noise['largest'])} for the worst). A true latency is "
        f"{off['all']:.3f} times the label (median), {off['best']:.3f} times for the program with "
        "the best label of its task.",
        *_shares(bundles),
        "By network:",
        table(
            ["network", "ceiling, top-1", "top-5", "the labels, top-1", "top-5"],
            [
                [
                    f"`{network}`",
                    *(f"{row[name]:.3f}" for name in _FIGURES),
                    *(f"{found['labels']['networks'][network][name]:.3f}" for name in _FIGURES),
                ]
                for network, row in found["ceiling"]["networks"].items()
            ],
        ),
        "The tasks whose looks differ most:",
        table(
            ["task", "one standard deviation", "top-1 of the true order"],
            [
                [row["task"], _spread(row["noise"]), f"{row['top1']:.3f}"]
                for row in found["by_task"][:_NOISIEST]
            ],
        ),
    ]


_HEADING = "## How good can a ranking be?"
_UNMEASURED = (
    "Two measurements of a program differ, so even somebody who knows each program's true latency "
    "would not reach 1 against these labels. What they would reach has not been measured yet: "
    "`python -m tools.benchmarks.ceiling`."
)
_FIGURES = ("top1", "top5")


def _shares(bundles: Mapping[str, Row]) -> list[str]:
    rows: list[Sequence[str]] = []
    for name, metrics in bundles.items():
        shares = [share_of_ceiling(metrics, figure) for figure in _FIGURES]
        if None not in shares:
            both = zip(_FIGURES, shares, strict=True)
            cells = [(f"{metrics[f]:.3f}", percent(part or 0, 1)) for f, part in both]
            rows.append([name, *(cell for pair in cells for cell in pair)])
    if not rows:
        return ["Not all held-out tasks were looked at, so no model is stated as a share of it."]
    return [
        "The shipped bundles, which rank all of a task's programs, judged by the labels and as a "
        "share of the ceiling:",
        table(["model", "top-1", "of the ceiling", "top-5", "of the ceiling"], rows),
    ]


def _both(row: Row) -> list[str]:
    ranges = ((name, row.get(f"{name}_interval", (row[name], row[name]))) for name in _FIGURES)
    return [with_range(row[name], low, high, 3) for name, (low, high) in ranges]


def _spread(noise: float) -> str:
    """Return a standard deviation of logarithms as people say it."""
    return percent(noise, 1)
