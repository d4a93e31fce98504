"""Layouts and ways of computing convolutions: what was measured before it was built, or left."""

from __future__ import annotations

from tools.evidence.files import read_result
from tools.evidence.markdown import table
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.provenance import measured

_WAYS = {"direct": "directly", "winograd": "by Winograd", "im2col": "by im2col"}


def parts() -> list[str]:
    """Return the page."""
    return [*_layouts(), *_ways(), *measured("layout_bound", "im2col")]


def _layouts() -> list[str]:
    networks = read_result("layout_bound")["networks"]
    rows = [
        [
            f"`{name}`",
            found["trials"],
            _ms(min(found["layouts_s"].values())),
            min(found["layouts_s"], key=found["layouts_s"].get),
            _ms(found["bound_s"]),
            f"{100 * (found['gain'] - 1):.1f} %",
            ", ".join(f"{count} {layout}" for layout, count in found["chosen"].items() if count),
        ]
        for name, found in networks.items()
    ]
    head = ["network", "trials", "one layout, ms", "which", "bound, ms", "gain", "chosen"]
    return [
        "## One layout, or one for each convolution",
        "`tune --layouts all` gives a network the fastest layout. The bound gives each "
        "convolution, with what follows it, the fastest for itself, as if changes between layouts "
        "cost nothing. "
        "It is made of the latencies that the search found on a machine that others used, too, and "
        "chooses among more of them: it promises too much rather than too little.",
        origin("layout_bound"),
        table(head, rows),
    ]


def _ways() -> list[str]:
    shapes = read_result("im2col").get("shapes", {})
    if not shapes:
        return []
    rows = [
        [
            shape,
            *(_ms(found[way]["taken_s"]) for way in _WAYS),
            *(_ms(found["im2col"]["product_s"]), found["im2col"]["product_trials"]),
        ]
        for shape, found in shapes.items()
    ]
    return [
        "## 3 x 3 convolutions in three ways",
        "Convolutions of resnet_18 with channels last, a bias and a ReLU: directly, by Winograd's "
        "algorithm, and as a product of gathered rows (im2col). Milliseconds of the tasks of each "
        "way, which were tuned in one run on a machine that others used, too; beside them what the "
        "product alone takes, once the rows are gathered, and its trials.",
        origin("im2col"),
        table(["channels x size", *_WAYS.values(), "the product of it", "trials"], rows),
    ]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g}"


PAGE = Page("convolutions", "Layouts and ways of convolutions", parts, ("layout_bound",))
