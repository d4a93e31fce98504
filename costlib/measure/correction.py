"""What the canaries say about a program's time; works where TVM is not installed."""

from __future__ import annotations

from collections.abc import Sequence

from costlib.canary_times import CanaryTimes

MEMORY_SHARE = 0.06
"""How much of a slow-down the memory canary explains beside the compute canary."""

DEAD_BAND = 0.05
"""Slow-downs up to this share are the canaries' own noise."""


def corrected_latency(
    run_secs: Sequence[float],
    canary_compute: Sequence[float],
    canary_memory: Sequence[float],
    reference: CanaryTimes,
) -> float:
    """Return a program's latency in the reference state, in seconds.

    Parameters
    ----------
    run_secs, canary_compute, canary_memory
        Seconds of the program and of each canary, one entry per repeat.
    reference
        What the canaries take in the reference state.

    Returns
    -------
    float
        The program's best repeat divided by the slow-down that the canaries saw at their best.
    """
    best = CanaryTimes(compute_s=min(canary_compute), memory_s=min(canary_memory))
    return min(run_secs) / slow_down(best, reference)


def slow_down(now: CanaryTimes, reference: CanaryTimes) -> float:
    """How many times slower than in the reference state a program runs now; at least 1."""
    compute = now.compute_s / reference.compute_s
    memory = now.memory_s / reference.memory_s
    return max(1.0, float(compute * memory**MEMORY_SHARE) / (1 + DEAD_BAND))
