"""Tuned networks beside PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tools.evidence.files import read_result
from tools.evidence.markdown import between, in_words, pictures, table, times
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.provenance import machine, measured, provenance
from tools.evidence.task_titles import title

Row = Mapping[str, Any]


def parts() -> list[str]:
    """Return the page."""
    machines = read_result("torch")["machines"]
    goal = provenance().goals.slower_than_pytorch
    named = provenance().benchmarks["torch"].runs[0].networks
    return [
        pictures({"pytorch.svg": "how much faster than PyTorch each network is"}),
        "Each network of the zoo is tuned in all layouts with the shipped bundle. Then it runs "
        "beside PyTorch, which calls oneDNN, and `torch.compile`, on the same two threads and in "
        f"turns. Our goal is that {goal or 'no'} network is slower than PyTorch. Speed-ups count "
        "rounded to a thousandth.",
        *(line for found in machines for line in _machine(found)),
        "## One network, few trials",
        *_tuned(),
        "Another such run [is a page of its own](bert_tiny.html), as `costlib report` writes it.",
        *measured("torch", "tune_bert_tiny"),
        f"The networks that came last are {in_words([f'`{n}`' for n in named])}.",
    ]


def _machine(found: Row) -> list[str]:
    networks = found["networks"]
    slower = {
        other: [row for row in networks if row["speedup"].get(other, np.inf) < 1]
        for other in ("pytorch", "compiled")
    }
    summary = [
        [
            f"`{words}`" if other == "compiled" else words,
            times(found["geometric_mean"][other]),
            times(found["median"][other]),
            between(min(_speedups(networks, other)), max(_speedups(networks, other))),
            in_words([f"`{row['network']}`" for row in slower[other]]) or "none",
        ]
        for other, words in (("pytorch", "PyTorch"), ("compiled", "torch.compile"))
    ]
    slow_tasks = [
        [f"`{row['network']}`", title(*task["task"].split("-")), task["ms"], task["gflops_per_s"]]
        for row in slower["pytorch"]
        for task in row["slowest_tasks"]
    ]
    return [
        f"## {machine(found['hardware'])}",
        "How many times as fast the tuned networks are, and which of them are slower.",
        origin("torch", hardware=found["hardware"]),
        table(["against", "geometric mean", "median", "range", "slower on"], summary),
        "Each network, with the layout that was the fastest and the trials of all layouts "
        "together; latencies are medians over the turns.",
        table(
            [
                "network",
                "layout",
                "trials",
                "tuned, ms",
                "PyTorch, ms",
                "`torch.compile`, ms",
                "of PyTorch",
                "of `torch.compile`",
            ],
            [
                [
                    f"`{row['network']}`",
                    row["version"].partition("+")[2] or "as exported",
                    row["trials"],
                    f"{row['tuned_ms']:.2f}",
                    f"{row['pytorch_ms']:.2f}",
                    f"{row['compiled_ms']:.2f}" if "compiled_ms" in row else "failed",
                    times(row["speedup"]["pytorch"]),
                    times(row["speedup"]["compiled"]) if "compiled_ms" in row else "",
                ]
                for row in sorted(networks, key=lambda row: -row["speedup"]["pytorch"])
            ],
        ),
        *(
            [
                "Where PyTorch is faster, the tasks that take most of the network's time:",
                table(["network", "task", "ms", "GFLOP/s"], slow_tasks),
            ]
            if slow_tasks
            else []
        ),
    ]


def _speedups(networks: list[Row], other: str) -> list[float]:
    return [row["speedup"][other] for row in networks if other in row["speedup"]]


def _tuned() -> list[str]:
    runs = read_result("tune_bert_tiny")
    rows = []
    for run in runs:
        (network,) = run["networks"]
        rows.append(
            [
                run["seed"],
                *(
                    f"{1e3 * network[f'{key}_s']:.2f}"
                    for key in ("latency_before", "latency_after", "pytorch_latency")
                ),
                times(network["pytorch_latency_s"] / network["latency_after_s"]),
                f"{network['max_abs_error']:.1e}",
                round(run["elapsed_s"]),
                round(run["search_s"]),
            ]
        )
    return [
        f"`{runs[0]['networks'][0]['network']}`, which the bundle has not seen, with "
        f"{runs[0]['trials']} trials in all, on {machine(runs[0]['hardware_id'])}. *Difference* is "
        "the largest between its output and PyTorch's.",
        origin("tune_bert_tiny"),
        table(
            [
                "seed",
                "untuned, ms",
                "tuned, ms",
                "PyTorch, ms",
                "of PyTorch",
                "difference",
                "seconds in all",
                "of these searching",
            ],
            rows,
        ),
    ]


def _drawn() -> Figure:
    (found,) = read_result("torch")["machines"]
    networks = sorted(found["networks"], key=lambda row: -row["speedup"]["pytorch"])
    rows = {
        row["network"]: [
            Mark(row["speedup"][other], *2 * [row["speedup"][other]])
            if other in row["speedup"]
            else None
            for other in ("pytorch", "compiled")
        ]
        for row in networks
    }
    kinds = ("PyTorch", "torch.compile")
    label = "times as fast as the other"
    ticks = (1, 2, 4, 8, 16)
    return marks_figure("tuned networks", rows, kinds, label, ticks=ticks, compared=1)


PAGE = Page(
    "pytorch",
    "Tuned networks against PyTorch",
    parts,
    ("torch", "tune_bert_tiny"),
    lambda: {"pytorch.svg": _drawn},
)
