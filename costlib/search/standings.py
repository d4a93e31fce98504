"""How the programs of a task stand after what was measured, some of them more than once."""

from __future__ import annotations

from collections import Counter
from statistics import median_low

_AGREE = 1.05
"""Two measurements of a program that differ by no more than this factor confirm each other."""


class Standings:
    """Programs by the median of what they were measured to take, of two by the lower one.

    The best of many measurements is often a lucky one. So a search measures a program again that
    stays the best. But the second one may be the unlucky one: if they do not agree, the third
    decides.

    Attributes
    ----------
    latencies_s
        Seconds of each program by its id, without those that failed.
    best
        Id of the fastest; ``None`` if nothing ran yet.
    """

    def __init__(self) -> None:
        self.latencies_s: dict[str, float] = {}
        self.best: str | None = None
        self._trials = 0
        self._samples_s: dict[str, list[float]] = {}
        self._looks: Counter[str] = Counter()
        self._last: dict[str, int] = {}

    @property
    def best_s(self) -> float | None:
        """Seconds that the best program takes."""
        return None if self.best is None else self.latencies_s[self.best]

    def add(self, program_id: str, latency_s: float | None) -> None:
        """Take up a measurement; ``None`` if the program failed."""
        self._trials += 1
        self._looks[program_id] += 1
        self._last[program_id] = self._trials
        if latency_s is None:
            return
        samples_s = self._samples_s.setdefault(program_id, [])
        samples_s.append(latency_s)
        best_s = self.best_s
        self.latencies_s[program_id] = median_low(samples_s)
        if program_id == self.best:
            self.best = min(self.latencies_s, key=self.latencies_s.__getitem__)
        elif best_s is None or self.latencies_s[program_id] < best_s:
            self.best = program_id

    def looks(self) -> int:
        """Return how often the best program was measured."""
        return 0 if self.best is None else self._looks[self.best]

    def is_confirmed(self) -> bool:
        """Whether a second measurement of the best program came to the same."""
        if self.best is None:
            return False
        fastest, *others = sorted(self._samples_s[self.best])
        return bool(others) and others[0] <= _AGREE * fastest

    def stands(self) -> int:
        """Return how many others were measured since the best program was."""
        return 0 if self.best is None else self._trials - self._last[self.best]
