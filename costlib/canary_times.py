"""What the canaries of a machine take; apart from the tables, whose library is slow to import."""

from __future__ import annotations

from costlib.frozen import FrozenStrict


class CanaryTimes(FrozenStrict):
    """Seconds of one call of each canary: now, or in the state that counts as reference."""

    compute_s: float
    memory_s: float

    def better_of(self, other: CanaryTimes) -> CanaryTimes:
        """Return the smaller time of two moments, for each canary."""
        return CanaryTimes(
            compute_s=min(self.compute_s, other.compute_s),
            memory_s=min(self.memory_s, other.memory_s),
        )
