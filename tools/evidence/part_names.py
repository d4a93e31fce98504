"""Names of the search's parts that say more than those in the result files."""

from __future__ import annotations

_TITLES = {
    "draft": "model of schedules",
    "bank": "prior bank",
    "early survivors": "more survivors at first",
    "correction": "correction by the run",
    "looks": "second looks",
    "directions": "mutation directions",
}


def titled(part: str) -> str:
    """Return what a part is called on the pages."""
    return _TITLES.get(part, part)
