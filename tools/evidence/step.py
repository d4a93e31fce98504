"""A step of ``python -m tools.evidence``: a process of its own, and what it needs."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple

from tools.evidence.labels import is_labelled_here
from tools.evidence.protocol import QUICK

WORK = "{work}"
"""Stands for the folder of a run in arguments."""

PEER = "COSTLIB_ANSOR"
"""Names the interpreter of a TVM that still has Ansor."""


class Shown(NamedTuple):
    """Where the provenance has a step: the benchmark, what of it in words, and its page."""

    benchmark: str
    part: str
    page: str


@dataclass(frozen=True)
class Step:
    """A process of its own.

    Attributes
    ----------
    name
        What it is called.
    module, full, quick
        What is run, and its arguments in a full and in a quick run; ``None`` if it has no part in
        that.
    minutes, quick_minutes
        How long either lasts, about.
    result
        The result file that it writes, without a suffix; ``""`` if others need what it makes.
    shown
        See :class:`Shown`.
    after
        Steps that it builds on.
    pieces
        What the names of the pieces begin with that it leaves to be packed; ``None`` if it leaves
        none.
    packages
        What it imports that is an extra.
    has_bundle
        Whether the shipped bundle takes part.
    """

    name: str
    module: str
    full: str | None
    quick: str | None
    minutes: float = 0
    quick_minutes: float = 0
    result: str = ""
    shown: Shown | None = None
    after: tuple[str, ...] = ()
    pieces: str | None = None
    packages: tuple[str, ...] = ()
    has_bundle: bool = False

    @property
    def arguments(self) -> str | None:
        """Those of this run."""
        return self.quick if QUICK else self.full

    @property
    def estimate(self) -> float:
        """Minutes of this run."""
        return self.quick_minutes if QUICK else self.minutes

    @property
    def command(self) -> str:
        """What is run, as a provenance has it."""
        return f"{self.module} {self.arguments}".strip()

    def words(self) -> list[str]:
        """Return the command as words."""
        return [self.module, *shlex.split(self.arguments or "")]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those that its arguments name."""
        words = self.words()
        found: list[int] = []
        for place, word in enumerate(words):
            if word in ("--seed", "--seeds"):
                for number in words[place + 1 :]:
                    if not number.isdigit():
                        break
                    found.append(int(number))
        return tuple(found)

    @property
    def kind(self) -> str:
        """What the names of all pieces of the kind begin with that it leaves."""
        assert self.pieces is not None
        return self.pieces.partition("-")[0] + "-"

    def hindrance(self, pending: Iterable[str]) -> str | None:
        """Return why it cannot run while some steps are not complete; ``None`` if it can."""
        if missing := [package for package in self.packages if find_spec(package) is None]:
            return f"{' and '.join(missing)} not installed: pip install -e '.[bench,engines]'"
        if waiting := set(self.after).intersection(pending):
            return f"builds on {' and '.join(sorted(waiting))}"
        if self.name == "ceiling" and not is_labelled_here():
            return "the held-out tasks were measured on another processor"
        if self.name == "peers" and not os.environ.get(PEER):
            return f"no interpreter with tvm.auto_scheduler is given in {PEER}"
        return None


def ordered(steps: Sequence[Step]) -> list[Step]:
    """Return the steps of this run, each after those it builds on, otherwise the cheapest first."""
    left = sorted((s for s in steps if s.arguments is not None), key=lambda step: step.estimate)
    found: list[Step] = []
    while left:
        names = {step.name for step in left}
        ready = next(step for step in left if not names.intersection(step.after))
        found.append(ready)
        left.remove(ready)
    return found
