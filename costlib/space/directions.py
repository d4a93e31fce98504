"""Directions in which a program can be changed, and how often MetaSchedule takes each."""

from __future__ import annotations

import numpy as np

from costlib.arrays import Bools, Floats

DIRECTIONS = (
    "tile_spatial",
    "tile_reduction",
    "vectorize",
    "unroll",
    "parallel",
    "compute_location",
    "thread_binding",
)
"""See :meth:`costlib.space.design_space.DesignSpace.directions`."""

_STOCK = {"compute_location": 0.05, "unroll": 0.03, "parallel": 0.02, "thread_binding": 0.02}
"""MetaSchedule's probabilities; what is left, 0.9 on CPUs, goes to the tile sizes."""


def stock_probabilities(allowed: Bools) -> Floats:
    """Return MetaSchedule's probability of each allowed direction, float64 `n x d`."""
    tiles = 1 - sum(_STOCK[name] for name in ("compute_location", "unroll", "parallel"))
    weights = np.array([_STOCK.get(name, 0.0) for name in DIRECTIONS])
    is_tile = np.array([name not in _STOCK for name in DIRECTIONS]) & allowed
    share = np.where(is_tile, tiles / np.maximum(is_tile.sum(1, keepdims=True), 1), 0)
    raw = share + weights * allowed
    return np.asarray(raw / np.maximum(raw.sum(1, keepdims=True), 1e-300))
