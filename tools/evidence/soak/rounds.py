"""What a round does: which command, into which folder, with which fault; drawn from a seed."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from costlib.tuning.session import RUN
from costlib.tuning.trials import TRIALS
from costlib.tvm_compat.api import module_to_json
from costlib.workloads import load_network
from tools.evidence.soak.faults import Fault, draw_fault

OPERATORS = ("matmul 64 64 64", "softmax 64 64", "dense 32 64 32 relu=1")
_MOST_STEPS = 3
"""A folder that has grown by so many steps is not gone on with."""

_SIMULATED = [sys.executable, "-m", "tools.evidence.soak.simulated"]
_COSTLIB = [sys.executable, "-m", "costlib"]


@dataclass(frozen=True)
class Kind:
    """A kind of command.

    Attributes
    ----------
    name
        Its name in the results.
    words
        How the command begins.
    count
        The option that says how many programs to measure.
    step
        By how many programs a folder grows, from a half of that to all of it.
    usual_secs
        What a round usually takes.
    share
        How often it is drawn, relative to the others.
    """

    name: str
    words: list[str]
    count: str
    step: int
    usual_secs: float
    share: float

    @property
    def tunes(self) -> bool:
        """Whether it tunes."""
        return self.count == "--trials"

    @property
    def is_real(self) -> bool:
        """Whether it measures on this machine, not on a simulated device."""
        return self.words[:3] == _COSTLIB

    def dataset(self, out: Path) -> Path:
        """Where in the folder its measurements are."""
        return out / TRIALS if self.tunes else out


KINDS = {
    kind.name: kind
    for kind in (
        Kind("collect", [*_COSTLIB, "collect"], "--programs", 6, 15, 3),
        Kind("tune", [*_COSTLIB, "tune"], "--trials", 8, 18, 3),
        Kind("collect, simulated", [*_SIMULATED, "collect"], "--programs", 96, 8, 3),
        Kind("tune, simulated", [*_SIMULATED, "tune-simulated"], "--trials", 96, 8, 3),
        Kind("in one process", [*_SIMULATED, "repeat"], "--times", 6, 90, 0.25),
    )
}


@dataclass
class Series:
    """A folder that several rounds of a kind go on with.

    Attributes
    ----------
    out
        The folder.
    sources
        Files of networks.
    programs
        How many programs the last round measured.
    """

    out: Path
    sources: list[str]
    programs: int = 0


@dataclass
class Plan:
    """A round to do.

    Attributes
    ----------
    number, seed
        Which one, of which soak.
    kind, fault, series
        What.
    """

    number: int
    seed: int
    kind: Kind
    fault: Fault
    series: Series

    @property
    def out(self) -> Path:
        """The folder it writes to."""
        return self.series.out

    def command(self) -> list[str]:
        """Return the command as it is to be given now."""
        programs = str(self.series.programs)
        command = [*self.kind.words, *self.series.sources, self.kind.count, programs]
        if self.kind.words[-1] == "repeat":
            return command
        command += ["--out", str(self.out)]
        if self.kind.is_real and self.kind.tunes:
            is_begun = (self.out / RUN).exists() or (self.out / TRIALS).exists()
            command += ["--pretrained", "none"] + ["--resume"] * is_begun
        return command + ["--json"] * (self.kind.words[-1] != "tune-simulated")


@dataclass
class Planner:
    """Draws rounds; remembers the folders that can be gone on with."""

    work: Path
    seed: int
    kinds: list[str] = field(default_factory=lambda: list(KINDS))
    series: dict[str, Series] = field(default_factory=dict)

    def plan(self, number: int) -> Plan:
        """Draw a round; where a disk is to fill up, it begins a folder of its own."""
        rng = random.Random(f"{self.seed} {number}")
        kind = KINDS[rng.choices(self.kinds, [KINDS[name].share for name in self.kinds])[0]]
        fault = draw_fault(rng, kind.usual_secs, has_server=kind.is_real)
        sources = rng.sample(OPERATORS, 1 if kind.tunes else 2)
        programs = rng.randint(kind.step // 2, kind.step)
        goes_on = rng.random() < 0.6
        if kind.words[-1] == "repeat":
            fault, programs = Fault("none"), kind.step
        series = self.series.get(kind.name)
        is_full = series is not None and series.programs > _MOST_STEPS * kind.step
        if series is None or is_full or not goes_on or fault.needs_small_disk:
            folder = self.work / ("small" if fault.name == "full disk" else "plain") / str(number)
            series = Series(folder, [str(self._file(source)) for source in sources])
            if not fault.needs_small_disk:
                self.series[kind.name] = series
        series.programs += programs
        return Plan(number, self.seed, kind, fault, series)

    def forget(self, plan: Plan) -> None:
        """Go on with its folder no more."""
        if self.series.get(plan.kind.name) is plan.series:
            del self.series[plan.kind.name]

    def _file(self, operator: str) -> Path:
        """A file of an operator, which is read without PyTorch."""
        file = self.work / f"{operator.split(maxsplit=1)[0]}.json"
        if not file.exists():
            file.write_text(module_to_json(load_network(operator).mod))
        return file


def described(plan: Plan) -> dict[str, Any]:
    """Return what the results say about a round before it begins."""
    fault = plan.fault
    record: dict[str, Any] = {
        "round": plan.number,
        "kind": plan.kind.name,
        "programs": plan.series.programs,
        "fault": fault.name,
    }
    if fault.name in ("kill", "stop"):
        record["target"] = fault.target
    for key in ("moment_s", "lasts_s", "shift_s"):
        if getattr(fault, key):
            record[key] = getattr(fault, key)
    return record
