"""Numbers as people read them: three digits, no exponents, one unit of time a page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_DIGITS = 3
_MOST_DECIMALS = 4


@dataclass(frozen=True)
class Unit:
    """A unit of time.

    Attributes
    ----------
    name
        Its sign, e.g. ``"ms"``.
    per_second
        How many of it a second has.
    """

    name: str
    per_second: float

    def text(self, seconds: float | None) -> str:
        """Write a latency with its unit, ``-`` if there is none."""
        return "-" if seconds is None else f"{plain(seconds * self.per_second)} {self.name}"


MICROSECONDS = Unit("µs", 1e6)
MILLISECONDS = Unit("ms", 1e3)
SECONDS = Unit("s", 1.0)


def unit_for(latencies_s: Iterable[float | None]) -> Unit:
    """Return the unit in which the largest of some latencies is no long number."""
    known = [one for one in latencies_s if one is not None and math.isfinite(one)]
    largest = max(known, default=0.0)
    if largest < 1e-3:
        return MICROSECONDS
    return MILLISECONDS if largest < 3 else SECONDS


def plain(value: float) -> str:
    """Write a number with three digits, or all those before the point."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if 0 < value < 0.5 * 10**-_MOST_DECIMALS:
        return f"<{10**-_MOST_DECIMALS:.{_MOST_DECIMALS}f}"
    decimals = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{min(max(decimals, 0), _MOST_DECIMALS)}f}"


def share(value: float) -> str:
    """Write a share as percent."""
    percent = 100 * value
    if 0 < percent < 0.05:
        return "<0.1 %"
    return f"{percent:.0f} %" if abs(percent) >= 10 or percent == 0 else f"{percent:.1f} %"


def counted(number: int, thing: str) -> str:
    """Write how many there are of something, e.g. ``"1 task"`` or ``"2,000 tasks"``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
