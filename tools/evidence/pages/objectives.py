"""Other ways to teach the model of trees, and whether one of them is worth having."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.evidence.markdown import in_words, percent, table
from tools.evidence.origins import origin
from tools.evidence.provenance import machine

Row = Mapping[str, Any]

_FIGURES = ("top1", "top5", "pairwise_accuracy")
_SHIPPED = "shipped"


def objectives(result: Row) -> list[str]:
    """Return the section."""
    rows = sorted(result["compared"], key=lambda row: -row["top1"])
    passed = [f"*{row['name']}*" for row in rows if row["passes"]]
    verdict = f"{in_words(passed)} would pass" if passed else "None passes"
    return [
        "## Other ways to teach it",
        f"The model of trees is trained in other ways on {result['programs']:,} programs of "
        f"{result['tasks']} training tasks on {machine(result['hardware'])}, and judged by "
        f"cross-validation in {result['folds']} folds. Each seed divides the tasks anew. *Shipped* "
        "has 800 trees of LambdaRank, the others 400 at twice the rate. Top-1 and top-5 are means "
        "over tasks. A gain is over *shipped* with the same seeds; its error is the standard error "
        "of the difference, over tasks or over folds, whichever is larger. *Top-1 by time* weighs "
        "tasks by their time; few slow ones decide it. *Training* and *trees* are relative to "
        "*shipped*.",
        "We adopt a change if it gains top-1 by two standard errors or more, loses no more top-5 "
        "and pairs than one, takes at most twice as long to train and has at most one and a half "
        f"times the trees. {verdict}.",
        origin("objectives"),
        table(
            ["trained by", "seeds", "top-1", "gain", "top-5", "gain", "pairs", "gain", *_FURTHER],
            [_row(row) for row in rows],
        ),
        "The bundles' scores are sums of their members', each standardised within a task: *with* "
        "and *two seeds* begin with the 400 trees of LambdaRank. *Pairs by regret* is a logistic "
        "loss in which a pair counts by how far its throughputs are apart, *softmax* the cross "
        "entropy with shares by the fourth power of throughput. *Near the best alone* learns from "
        "programs with at least 0.4 of the best throughput. *Contiguous loops* sees 14 more "
        "columns, which follow from those there are, of the innermost loop along which stores lie "
        "side by side. What seemed to gain top-1 with one seed did not with further ones; pairs by "
        "regret, alone and in bundles, put more pairs in order.",
        "### What is lost",
        "What the first choice of *shipped* lacks to the best throughput, which share of all that "
        "is lost that is, and how often the first choice has less than half of the best "
        "throughput. A program is vectorized if its innermost loop is.",
        origin("objectives"),
        *(_lost(name, rows) for name, rows in result["lost"].items()),
        "Most is lost on `conv2d`, and where the best program has no vectorized loop: the compiler "
        "then vectorizes what the features describe as scalar. The slow first choices of "
        "`avg_pool2d` come from global pooling that was imported with a window larger than the "
        "image: where the padding is inlined, the compiler shortens the loops to the image, which "
        "no feature sees.",
    ]


def _lost(name: str, rows: Sequence[Row]) -> str:
    return table(
        [name, "tasks", "lost by the first choice", "share of all", "less than half"],
        [
            [
                row["kind"],
                row["tasks"],
                f"{row['lost']:.3f}",
                percent(row["share_of_all"]),
                percent(row["far"]),
            ]
            for row in rows
        ],
    )


_FURTHER = ("top-1 by time", "training", "trees")


def _row(row: Row) -> list[Any]:
    figures: list[str] = []
    for name in _FIGURES:
        gain, error = row[f"gain_of_{name}"], row[f"{name}_error"]
        told = "" if row["name"] == _SHIPPED else f"{gain:+.4f} ± {error:.4f}"
        figures += [f"{row[name]:.4f}", told]
    further = f"{row['weighted_top1']:.3f}", f"{row['training']:.1f}", f"{row['trees']:.1f}"
    return [row["name"], row["seeds"], *figures, *further]
