"""What was measured of a task's programs, some of them more than once."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from statistics import median_low

from costlib.schema import Origin
from costlib.space.program import Program

_AGREE = 1.05
"""Two measurements of a program that differ by no more than this factor confirm each other."""


class TaskHistory:
    """Programs by the median of what they were measured to take, of two by the lower one.

    The best of many measurements is often a lucky one. So a search measures a program again that
    stays the best. But the second one may be the unlucky one: if they do not agree, the third
    decides. As soon as a program was measured in a calm moment, what it took in others counts no
    more: a correction by the canaries can be too large.

    Attributes
    ----------
    measured
        Ids of the programs that were measured, are being measured, or failed.
    programs
        Those that were measured, by their ids, in the order of their first measurement.
    latencies_s
        Seconds of each program by its id, without those that failed.
    best
        Id of the fastest; ``None`` if nothing ran yet.
    best_after_s
        Seconds of the best program after each measurement. They rise where the best one, measured
        again, turns out to be slower.
    origins
        How many measurements there were of programs made in each way.
    """

    def __init__(self) -> None:
        self.measured: set[str] = set()
        self.programs: dict[str, Program] = {}
        self.latencies_s: dict[str, float] = {}
        self.best: str | None = None
        self.best_after_s: list[float | None] = []
        self.origins: Counter[Origin] = Counter()
        self._samples_s: dict[str, list[float]] = {}
        self._looks: Counter[str] = Counter()
        self._last: dict[str, int] = {}
        self._calm: set[str] = set()
        self._raced: set[str] = set()

    def __len__(self) -> int:
        """How many measurements there were."""
        return len(self.best_after_s)

    def add(
        self,
        program: Program,
        latency_s: float | None,
        origin: Origin,
        *,
        calm: bool = False,
        raced: bool = False,
    ) -> None:
        """Take up a measurement.

        Parameters
        ----------
        program, origin
            What was measured, and how it was made.
        latency_s
            Seconds; ``None`` if it failed.
        calm
            Whether the machine was calm meanwhile.
        raced
            Whether it was timed roughly, because it could not win.
        """
        name = program.program_id
        self.__dict__.pop("elite", None)
        self.measured.add(name)
        self.programs.setdefault(name, program)
        self.origins[origin] += 1
        self._looks[name] += 1
        self._last[name] = len(self)
        if latency_s is not None and (calm or name not in self._calm):
            (self._raced.add if raced else self._raced.discard)(name)
            self._note(name, latency_s, calm=calm)
        self.best_after_s.append(self.best_s)

    def _note(self, name: str, latency_s: float, *, calm: bool) -> None:
        samples_s = self._samples_s.setdefault(name, [])
        if calm and name not in self._calm:
            samples_s.clear()
            self._calm.add(name)
        samples_s.append(latency_s)
        best_s = self.best_s
        self.latencies_s[name] = median_low(samples_s)
        if name == self.best:
            self.best = min(self.latencies_s, key=self.latencies_s.__getitem__)
        elif best_s is None or self.latencies_s[name] < best_s:
            self.best = name

    @property
    def best_s(self) -> float | None:
        """Seconds that the best program takes."""
        return None if self.best is None else self.latencies_s[self.best]

    @cached_property
    def elite(self) -> list[tuple[float, Program]]:
        """(latency in seconds, program) of those that ran, the best first."""
        pairs = ((self.latencies_s[name], self.programs[name]) for name in self.latencies_s)
        return sorted(pairs, key=lambda pair: pair[0])

    @property
    def timed_well(self) -> list[tuple[float, Program]]:
        """Those of :attr:`elite` whose latency is not rough."""
        return [pair for pair in self.elite if pair[1].program_id not in self._raced]

    def looks(self) -> int:
        """Return how often the best program was measured."""
        return 0 if self.best is None else self._looks[self.best]

    def is_sure(self) -> bool:
        """Whether the best program does not owe its place to luck.

        It was measured in a calm moment, or two measurements of it came to the same.
        """
        if self.best is None:
            return False
        fastest, *others = sorted(self._samples_s[self.best])
        return self.best in self._calm or (bool(others) and others[0] <= _AGREE * fastest)

    def stands(self) -> int:
        """Return how many others were measured since the best program was."""
        return 0 if self.best is None else len(self) - 1 - self._last[self.best]
