"""Schedules of Ansor and AutoTVM as sketches and decisions."""

from __future__ import annotations

import re
from typing import Any

from costlib.space.program import Sketch

_HOLE = None
_VALUE = re.compile(r"(.*\$)([^$]*)", re.DOTALL)
"""A step's text that ends in a value, such as ``auto_unroll_max_step$512``."""

_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")


def erase_steps(steps: list[Any]) -> tuple[Sketch, list[Any]]:
    """Take the numbers out of a sequence of steps.

    Parameters
    ----------
    steps
        JSON values, one for each step. Numbers, truth values and nulls are taken out of them,
        and what follows a ``$`` in a text.

    Returns
    -------
    sketch, decisions
        The steps with holes, shared by all schedules of the same structure, and
        ``[step, values]`` for each step with holes. The inverse is :func:`fill_steps`.
    """
    erased, decisions = [], []
    for index, step in enumerate(steps):
        values: list[Any] = []
        erased.append(_erase(step, values))
        if values:
            decisions.append([index, values])
    return Sketch(erased), decisions


def fill_steps(sketch: Sketch, decisions: list[Any]) -> list[Any]:
    """Return the steps that :func:`erase_steps` took apart."""
    values = {index: iter(taken) for index, taken in decisions}
    return [_fill(step, values.get(i, iter(()))) for i, step in enumerate(sketch.instructions)]


def _erase(value: Any, taken: list[Any]) -> Any:
    if isinstance(value, list):
        return [_erase(item, taken) for item in value]
    if isinstance(value, dict):
        return {key: _erase(value[key], taken) for key in sorted(value)}
    if isinstance(value, str):
        match = _VALUE.fullmatch(value)
        if match is None:
            return value
        text, end = match.groups()
        taken.append(int(end) if _NUMBER.fullmatch(end) else end)
        return text
    taken.append(value)
    return _HOLE


def _fill(value: Any, taken: Any) -> Any:
    if isinstance(value, list):
        return [_fill(item, taken) for item in value]
    if isinstance(value, dict):
        return {key: _fill(value[key], taken) for key in sorted(value)}
    if isinstance(value, str):
        return f"{value}{next(taken)}" if value.endswith("$") else value
    return next(taken)
