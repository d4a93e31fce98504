"""Markdown: tables, and numbers as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"[-+]?\d[\d,.]*(?![\d-])")


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table: integers get separators, columns of numbers are aligned to the right."""
    lines = [list(map(_cell, row)) for row in rows]
    columns = list(zip(*lines, strict=True)) or [()] * len(head)
    rules = ["---:" if _are_numbers(column) else "---" for column in columns]
    return "\n".join("| " + " | ".join(line) + " |" for line in [list(head), rules, *lines])


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")


def _are_numbers(column: Sequence[str]) -> bool:
    filled = [cell for cell in column if cell]
    return bool(filled) and all(_NUMBER.match(cell) for cell in filled)


def pictures(names: Mapping[str, str]) -> str:
    """Return pictures that lie beside the page, by their files' names; the values say what of."""
    return "\n".join(f"![{words}]({name})" for name, words in names.items())


def times(ratio: float) -> str:
    """Return a ratio as a factor."""
    return f"{ratio:.2f}x"


def share(part: float) -> str:
    """Return a share of one, to two digits that say something."""
    return f"{part:.2f}" if part >= 0.1 else f"{part:.3f}"


def between(lowest: float, highest: float, digits: int = 2) -> str:
    """Return a range, or the one value that it holds."""
    low, high = f"{lowest:.{digits}f}", f"{highest:.{digits}f}"
    return low if low == high else f"{low} to {high}"


def with_range(value: float, lowest: float, highest: float, digits: int = 2) -> str:
    """Return a value and, in brackets, the range that it is the mean of."""
    low, high = f"{lowest:.{digits}f}", f"{highest:.{digits}f}"
    middle = f"{value:.{digits}f}"
    return middle if low == high else f"{middle} ({low} to {high})"


def with_error(value: float, error: float | None) -> str:
    """Return a value and its standard error."""
    return f"{value:.2f}" if error is None or math.isnan(error) else f"{value:.2f} ± {error:.2f}"


def percent(part: float, digits: int = 0) -> str:
    """Return a share of one as a percentage."""
    return f"{100 * part:.{digits}f} %"


def in_words(parts: Sequence[str]) -> str:
    """Return a list as a sentence has it."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
