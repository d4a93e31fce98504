"""What was measured where and when, what changed since, and what was aimed at.

``provenance.json``, beside the result files, holds it. ``python -m tools.evidence`` notes its runs
there; what has changed since is noted by hand, as no run can know what came after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from pydantic import BaseModel, ConfigDict

from tools.evidence.files import read_result
from tools.evidence.goals import Goals
from tools.evidence.markdown import in_words, table


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Run(_Strict):
    """A part of a benchmark, measured on one machine.

    Attributes
    ----------
    part
        In words.
    command
        The module that measures it, and its arguments.
    machine
        A hardware id; ``None`` where it does not matter.
    measured
        The first and the last day.
    since
        Keys of :attr:`Provenance.changes` that came after it.
    bundle_knows_machine
        Whether the bundle was trained on measurements of this machine, where that matters.
    variants, networks
        What of the benchmark it was, where the result files do not say.
    commit, seeds, versions
        The last commit that changed what was measured, the seeds, and the versions of the packages;
        without them where they were not noted.
    """

    part: str
    command: str
    machine: str | None
    measured: tuple[str, str]
    since: tuple[str, ...]
    bundle_knows_machine: bool | None = None
    variants: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    commit: str | None = None
    seeds: tuple[int, ...] = ()
    versions: dict[str, str] = {}

    @property
    def where(self) -> str:
        """The machine and, if it was noted, the commit."""
        return machine(self.machine) + (f", commit `{self.commit}`" if self.commit else "")

    @property
    def when(self) -> str:
        """The days on which it was measured."""
        first, last = self.measured
        return first if first == last else f"{first} to {last}"


class Measured(_Strict):
    """A benchmark: the page it is shown on, and its runs."""

    page: str
    runs: tuple[Run, ...]


class Provenance(_Strict):
    """All of the file.

    Attributes
    ----------
    machines
        Short names of hardware ids.
    changes
        What has changed in costlib since the oldest of the measurements, the oldest change first.
    """

    machines: dict[str, str]
    changes: dict[str, str]
    goals: Goals
    benchmarks: dict[str, Measured]

    @property
    def newest(self) -> Run | None:
        """The newest run whose commit is known; ``None`` if none is.

        Of those of one day it is one after which nothing changed, the last that is noted.
        """
        runs = [run for run in self.runs() if run.commit]
        return max(runs[::-1], key=lambda run: (run.measured[1], not run.since), default=None)

    def runs(self, page: str | None = None) -> list[Run]:
        """Return the runs that are shown on a page; by default, all of them."""
        shown = [found for found in self.benchmarks.values() if page in (None, found.page)]
        return [run for found in shown for run in found.runs]

    def is_older(self, run: Run) -> bool:
        """Whether costlib has changed since, or the newest run is of another commit."""
        newest = self.newest
        return bool(run.since) or (newest is not None and run.commit != newest.commit)


@cache
def provenance() -> Provenance:
    """Return what the file says."""
    return Provenance.model_validate(read_result("provenance"))


def machine(hardware_id: str | None) -> str:
    """Return the short name of a hardware."""
    return "any" if hardware_id is None else provenance().machines.get(hardware_id, hardware_id)


def measured(*benchmarks: str) -> list[str]:
    """Return the section of a page that says how its figures came about."""
    known = provenance()
    found = [known.benchmarks[name] for name in benchmarks if name in known.benchmarks]
    runs = [run for benchmark in found for run in benchmark.runs]
    if not runs:
        return []
    rows = [_row(run) for run in runs]
    head = (
        *("by", "what", "machine", "commit", "when", "seeds"),
        *("bundle knows the machine", "changed in costlib since"),
    )
    columns = [i for i in range(len(head)) if any(row[i] for row in rows)]
    return [
        HEADING,
        table([head[i] for i in columns], [[row[i] for i in columns] for row in rows]),
        *_with_versions(runs),
        *_older(runs),
    ]


HEADING = "## How it was measured"


def _row(run: Run) -> list[str]:
    return [
        f"`python -m {run.command}`",
        run.part,
        machine(run.machine),
        f"`{run.commit}`" if run.commit else "",
        run.when,
        ", ".join(map(str, run.seeds)),
        {True: "yes", False: "no", None: ""}[run.bundle_knows_machine],
        since(run),
    ]


def since(run: Run) -> str:
    """Return what has changed since, as a table has it."""
    if provenance().is_older(run):
        return f"older: {', '.join(run.since) or 'another commit'}"
    return "nothing known"


def _with_versions(runs: Sequence[Run]) -> list[str]:
    """Return a line of packages for each set of them that was there."""
    sets = dict.fromkeys(tuple(run.versions.items()) for run in runs if run.versions)
    return [f"With {in_words([f'{name} {number}' for name, number in one])}." for one in sets]


def _older(runs: Sequence[Run]) -> list[str]:
    """Return what of a page is older than costlib as it is, and what has changed since."""
    known = provenance()
    changed = {name for run in runs for name in run.since}
    lines = []
    if parts := dict.fromkeys(run.part for run in runs if run.since):
        words = [f"- *{name}*: {text}" for name, text in known.changes.items() if name in changed]
        lines += [f"**Older** than costlib is now: {in_words(list(parts))}. What changed since:"]
        lines += ["\n".join(words)]
    others = [run for run in runs if known.is_older(run) and not run.since]
    if (newest := known.newest) and others:
        parts = dict.fromkeys(run.part for run in others)
        lines += [
            f"**Older** than the newest evidence, which is of commit `{newest.commit}`: "
            f"{in_words(list(parts))}. Nothing is known to have changed that these figures depend "
            "on."
        ]
    return lines
