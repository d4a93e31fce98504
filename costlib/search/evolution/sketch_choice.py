"""Which sketch to look for programs in: explore, then commit (Han et al. 2025).

Every sketch is measured a few times; after that most programs are drawn from the one with the best
mean throughput, in which recent programs count most. The others keep a share, so that
a wrong commitment is undone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_EXPLORED = 4
"""Measured programs after which a sketch counts as explored."""

_OTHERS = 0.2
"""Share of the sketches that are not committed to, all together."""

_FORGETTING = 0.95
"""Weight of a program relative to the next of the same sketch."""


class SketchChoice:
    """Divides a task's candidates among its sketches.

    Parameters
    ----------
    sketch_ids
        The task's sketches.
    """

    def __init__(self, sketch_ids: Sequence[str]) -> None:
        self._throughput: dict[str, list[float]] = {name: [] for name in sketch_ids}

    def observe(self, sketch_id: str, latency_s: float | None) -> None:
        """Take up a measurement; ``None`` if the program failed."""
        if sketch_id in self._throughput:
            self._throughput[sketch_id].append(1 / latency_s if latency_s else 0.0)

    @property
    def committed(self) -> str | None:
        """The sketch that is committed to, once all are explored."""
        if any(len(seen) < _EXPLORED for seen in self._throughput.values()):
            return None
        return max(self._throughput, key=lambda name: _recent_mean(self._throughput[name]))

    def shares(self) -> dict[str, float]:
        """Return the share of each sketch; they add up to 1."""
        names = list(self._throughput)
        if len(names) < 2 or self.committed is None:
            return dict.fromkeys(names, 1 / max(len(names), 1))
        others = _OTHERS / (len(names) - 1)
        return {name: 1 - _OTHERS if name == self.committed else others for name in names}


def _recent_mean(throughput: Sequence[float]) -> float:
    weights = _FORGETTING ** np.arange(len(throughput))[::-1]
    return float(weights @ np.asarray(throughput) / weights.sum())
