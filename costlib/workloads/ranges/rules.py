"""The rules of all operators, by the names of ATen's."""

from __future__ import annotations

from costlib.workloads.ranges import mixing, moving
from costlib.workloads.ranges.walk import RULES

__all__ = ["RULES", "mixing", "moving"]
