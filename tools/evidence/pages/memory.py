"""What a memory of a user's earlier runs is worth."""

from __future__ import annotations

from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import in_words, percent, share, table, times
from tools.evidence.memory_summary import SHARES
from tools.evidence.pages.page import Page
from tools.evidence.protocol import MEMORY_TRIALS
from tools.evidence.provenance import measured

_GOAL = 0.5


def parts() -> list[str]:
    """Return the page."""
    rows = read_result("memory")["networks"]
    return [
        "Networks from outside the zoo are tuned one after the other, with the shipped bundle and "
        f"{MEMORY_TRIALS} trials a task: with `--memory`, so that the best programs of the earlier "
        "ones are there as priors, and without. Both sides take turns on one machine. *Trials* is "
        "after which share of them the search with the memory was as fast as the other one at its "
        "end, to within 1 %, and stayed so. The last columns are the throughput with the memory "
        "relative to that without, when both had spent a share of the trials; no figure where a "
        "task had no program yet.",
        *([_verdict(rows)] if len(rows) > 1 else []),
        table(
            ["network", "seeds", "reached", "trials", *(f"after {percent(s)}" for s in SHARES)],
            [
                [
                    f"`{row['name'].partition('-')[2]}`",
                    len(row["seeds"]),
                    sum(seed["reached"] for seed in row["seeds"]),
                    share(row["trials_ratio"]),
                    *(
                        times(row["faster"][key]) if (key := f"{part:g}") in row["faster"] else ""
                        for part in SHARES
                    ),
                ]
                for row in rows
            ],
        ),
        *measured("memory"),
    ]


def _verdict(rows: list[dict[str, Any]]) -> str:
    """Say whether the last network needed few enough trials."""
    *earlier, last = rows
    names = in_words([f"`{row['name'].partition('-')[2]}`" for row in earlier])
    verdict = "met" if last["trials_ratio"] <= _GOAL else "**missed**"
    return (
        f"`{last['name'].partition('-')[2]}` comes last, after {names}. It needs "
        f"{share(last['trials_ratio'])} of the trials; our goal is {share(_GOAL)}: {verdict}."
    )


PAGE = Page("memory", "With a memory of earlier runs", parts, ("memory",))
