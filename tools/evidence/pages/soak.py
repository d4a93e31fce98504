"""Hours of work on a machine that misbehaves."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from tools.evidence.files import read_result
from tools.evidence.markdown import table
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.provenance import measured

_OUTCOMES = ("went on", "ended", "undisturbed")


def parts() -> list[str]:
    """Return the page."""
    result = read_result("soak")
    summary, rounds = result["summary"], result["rounds"]
    struck = [one for one in rounds if one["outcome"] in _OUTCOMES]
    return [
        f"In {summary['minutes'] / 60:.1f} hours of faults, {summary['rounds']} rounds measured "
        f"{summary['rows']:,} programs. Problems found: {summary['problems']}.",
        "Each round runs `costlib tune` or `costlib collect`, on this machine or over a simulated "
        "device, and lets one fault happen at a random moment. It then runs the same command "
        "again. A problem would be a lost or a false record, a wrong exit code, a traceback, "
        "something that `dataset verify` finds, or a process or a file that is left over.",
        origin("soak"),
        table(
            ["fault", "rounds", "the command went on", "the command ended"],
            _by_fault(struck),
        ),
        f"Rounds in which the command was over before its fault: {len(rounds) - len(struck)}.",
        table(["command", "rounds"], summary["kinds"].items()),
        *measured("soak"),
    ]


def _by_fault(rounds: list[dict[str, Any]]) -> list[list[Any]]:
    outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in rounds:
        name = " ".join(one[key] for key in ("fault", "target") if key in one)
        outcomes[name][one["outcome"]] += 1
    return [
        [name, found.total(), found["went on"] + found["undisturbed"], found["ended"]]
        for name, found in sorted(outcomes.items())
    ]


PAGE = Page("soak", "Faults of the machine", parts, ("soak",))
