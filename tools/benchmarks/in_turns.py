"""Compiled networks that take turns, each in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from costlib.frozen import Frozen
from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.traces import Traced
from costlib.tuning.turns import Contestant, take_turns

_MOST_TURNS = 15


class Timed(Frozen):
    """How long a call of a network takes.

    Attributes
    ----------
    network_s
        Seconds, see :attr:`costlib.tuning.turns.Contestant.latency_s`.
    spread_s
        The fastest and the slowest of the turns that count.
    is_settled
        Whether these agree.
    """

    network_s: float
    spread_s: tuple[float, float]
    is_settled: bool


def timed(libraries: Mapping[str, Path], hardware: Hardware) -> dict[str, Timed]:
    """Let networks take turns, by what they are called here."""
    with Measurer(hardware) as measurer, ScratchFolder() as scratch:
        contestants = {}
        for number, (name, library) in enumerate(libraries.items()):
            folder = scratch / str(number)
            folder.mkdir()
            contestants[name] = Contestant(Traced(library, measurer, folder).plain)
        take_turns(list(contestants.values()), _MOST_TURNS)
    return {
        name: Timed(network_s=one.latency_s, spread_s=one.spread_s, is_settled=one.is_settled)
        for name, one in contestants.items()
    }
