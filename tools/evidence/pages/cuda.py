"""A first check on a GPU."""

from __future__ import annotations

from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import table
from tools.evidence.pages.page import Page
from tools.evidence.provenance import machine, measured


def parts() -> list[str]:
    """Return the page."""
    result = read_result("cuda")
    searched = result["search"]
    trials = next(iter(searched.values()))["search"]["trials"]
    outputs = [program for found in result["outputs"].values() for program in found]
    right = sum(program["status"] == "ok" for program in outputs)
    return [
        f"On {machine(result['hardware'])}, the search without a bundle and random programs take "
        f"turns, {trials} trials each with one seed; PyTorch runs in full single precision. The "
        "search was made for CPUs then, and did not pay there.",
        table(
            ["operator", "search, µs", "random programs, µs", "PyTorch, µs"],
            [
                [
                    f"`{operator}`",
                    *(f"{sides[side]['best_us']:.1f}" for side in ("search", "random")),
                    f"{result['pytorch'][operator]:.1f}",
                ]
                for operator, sides in searched.items()
            ],
        ),
        *_networks(result),
        "## Outputs",
        f"{right} of {len(outputs)} random programs give what the unscheduled program gives on the "
        "CPU.",
        table(
            ["operator", "program", "output", "µs"],
            [
                [
                    f"`{operator}`",
                    number,
                    "right" if found["status"] == "ok" else found["status"],
                    f"{found['us']:.1f}",
                ]
                for operator, programs in result["outputs"].items()
                for number, found in enumerate(programs, 1)
            ],
        ),
        *measured("cuda"),
    ]


def _networks(result: dict[str, Any]) -> list[str]:
    """Return the table of the networks, if any was tuned."""
    known = result.get("networks", {})
    found = {name: network for name, network in known.items() if "error" not in network}
    if not found:
        return []
    sides = ("untuned_us", "tuned_us", "pytorch_us", "torch_compile_us")
    rows = [
        [
            name,
            f"{network['trials']} of {network['wanted']}",
            *("-" if network[side] is None else f"{network[side] / 1e3:.2f}" for side in sides),
        ]
        for name, network in found.items()
    ]
    columns = ["network", "trials", "untuned, ms", "tuned, ms", "PyTorch, ms", "torch.compile, ms"]
    return ["## Networks", table(columns, rows)]


PAGE = Page("cuda", "On a GPU", parts, ("cuda",))
