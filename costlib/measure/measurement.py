"""A program that is to be measured, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from costlib.schema import CacheState, Status
from costlib.space.program import Program

DOUBTFUL = 1.03
"""A correction by more than this factor is not believed at once."""


@dataclass(frozen=True)
class Candidate:
    """A program that is to be measured.

    Attributes
    ----------
    program
        The program.
    schedule
        What it lowers to; ``None`` if it does not pass the postprocessors.
    race
        Whether repeats are saved where it cannot win.
    """

    program: Program
    schedule: Any | None
    race: bool = True


@dataclass(frozen=True)
class Measurement:
    """One attempt to build and run a program.

    Attributes
    ----------
    latency_s
        Seconds of one call in the reference state of the machine; ``None`` unless ``status`` is
        ``OK``.
    run_secs, canary_compute, canary_memory
        Raw seconds of the program and the canaries, one entry per repeat.
    raced
        Whether repeats were saved because the program could not win.
    build_secs
        Seconds of compiling.
    error
        One line on what failed.
    cache
        What it found in the caches.
    """

    program: Program
    status: Status
    latency_s: float | None = None
    run_secs: tuple[float, ...] = ()
    canary_compute: tuple[float, ...] = ()
    canary_memory: tuple[float, ...] = ()
    raced: bool = False
    build_secs: float | None = None
    error: str | None = None
    cache: CacheState = CacheState.WARM

    @property
    def is_calm(self) -> bool:
        """Whether the machine was calm meanwhile: the latency was corrected by next to nothing."""
        if self.latency_s is None or not self.run_secs:
            return False
        return min(self.run_secs) <= DOUBTFUL * self.latency_s
