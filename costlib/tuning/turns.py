"""Latencies that contestants take in turns until those of each agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from costlib.measure.jobs import SLOW_SECS

_ENOUGH = 3
"""Turns that must agree."""

_PATIENCE_SECS = 4.0
"""What is slow has no more turns once it took so long."""

_AGREEMENT = 1.05
"""How far the slowest of them may be from the fastest."""

_CALLS = 30
"""Of a contestant in a turn, if they fit."""

_SHORTEST_SECS, _LONGEST_SECS = 0.02, 0.3


@dataclass
class Contestant:
    """What is timed.

    Attributes
    ----------
    run
        Calls it for so many seconds, at least once, and returns those of its fastest call.
    is_yardstick
        It is there to be compared with: where it is slow, one turn is enough.
    turns
        Seconds of each turn's fastest call.
    """

    run: Callable[[float], float]
    is_yardstick: bool = False
    turns: list[float] = field(default_factory=list)

    @property
    def latency_s(self) -> float:
        """The median of the turns that were disturbed least."""
        best = self._calmest
        return best[(len(best) - 1) // 2]

    @property
    def spread_s(self) -> tuple[float, float]:
        """The fastest and the slowest of these turns."""
        return self._calmest[0], self._calmest[-1]

    @property
    def is_settled(self) -> bool:
        """Whether enough turns agree; of what is slow two are enough, of a slow yardstick one."""
        best = self._calmest
        return len(best) == self._enough and best[-1] <= _AGREEMENT * best[0]

    @property
    def _calmest(self) -> list[float]:
        return sorted(self.turns)[: self._enough]

    @property
    def _enough(self) -> int:
        if not self.is_slow:
            return _ENOUGH
        return 1 if self.is_yardstick else 2

    @property
    def is_slow(self) -> bool:
        """Whether a call takes so long that others hardly disturb it."""
        return min(self.turns, default=0.0) >= SLOW_SECS

    @property
    def is_tried(self) -> bool:
        """Whether it is slow and has had time enough."""
        return self.is_slow and len(self.turns) > 1 and sum(self.turns) >= _PATIENCE_SECS

    def count(self, calls_s: Iterable[float]) -> None:
        """Take each slow call that was timed elsewhere for a turn."""
        self.turns += [call_s for call_s in calls_s if call_s >= SLOW_SECS]

    def take_turn(self) -> None:
        """Time it once more, for as long as its calls take."""
        expected = min(self.turns, default=math.inf)
        secs = _CALLS * expected if self.turns else _SHORTEST_SECS
        self.turns.append(self.run(min(max(secs, _SHORTEST_SECS), _LONGEST_SECS)))


def take_turns(contestants: Sequence[Contestant], most: int) -> None:
    """Time contestants one after the other until all have settled, at most so many times.

    Those that must not be disturbed differently run in every round; a yardstick, or what is slow,
    does not once it has settled; what is slow has a few seconds, whether its turns agree or not.
    """
    for _ in range(most):
        if all(one.is_settled or one.is_tried for one in contestants):
            return
        for one in contestants:
            if not (one.is_tried or (one.is_settled and (one.is_yardstick or one.is_slow))):
                one.take_turn()
