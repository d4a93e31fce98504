"""What networks gain by how they are prepared, part by part."""

from __future__ import annotations

from tools.evidence.files import read_result
from tools.evidence.markdown import between, table, times
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.provenance import measured

_PARTS = {
    "attention": "attention as one kernel",
    "caches": "keys read as they lie in a cache",
    "masks": "nothing computed that a causal mask hides",
    "vectors": "weights filled up to whole vectors",
    "concatenations": "concatenations written in place",
    "layouts": "layouts that convolutions are tried in",
    "winograd": "3 x 3 convolutions by Winograd's algorithm",
}


def parts() -> list[str]:
    """Return the page."""
    result = read_result("preparation")
    cases = result["cases"]
    rows = []
    for part, gains in result["gains"].items():
        for network, gain in gains.items():
            found = [c for c in cases if (c["part"], c["network"]) == (part, network)]
            each = [case["off"]["network_s"] / case["on"]["network_s"] for case in found]
            latencies = [
                f"{1e3 * sum(case[side]['network_s'] for case in found) / len(found):.3g}"
                for side in ("off", "on")
            ]
            spread = between(min(each), max(each))
            rows.append([_PARTS[part], f"`{network}`", *latencies, times(gain), spread, len(found)])
    trials = sorted({case["per_task"] for case in cases})
    return [
        "A network is tuned twice with the shipped bundle, in all layouts, once with a part of its "
        "[preparation](../tune.md#transformers) switched off; the two compiled networks then take "
        f"turns. Either had {' or '.join(map(str, trials))} trials a task. Latencies are "
        "milliseconds, means over seeds; the gain is their geometric mean, beside it the least and "
        "the most of a seed.",
        origin("preparation"),
        table(["part", "network", "without it, ms", "with it, ms", "gain", "seeds", "n"], rows),
        *measured("preparation"),
    ]


PAGE = Page("preparation", "How networks are prepared", parts, ("preparation",))
