"""The tasks of the networks that models are judged on: never measured to learn from.

``held_out.txt`` has the likeness of each (:attr:`costlib.data.splits.WorkloadKey.likeness`), so
that they are known without the dataset, and without importing the networks.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("held_out.txt")
"""Written by ``python -m tools.maintenance.held_out_likeness``."""


@cache
def held_out_likeness() -> frozenset[str]:
    """Return the likeness of every task of the held-out networks."""
    return frozenset(FILE.read_text().split())
