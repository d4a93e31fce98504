"""What was measured where and when, what changed since, and what was aimed at.

``tools/results/provenance.json`` holds it; it is kept by hand, as no result file can know what
came after it.
"""

from __future__ import annotations

from functools import cache

from pydantic import BaseModel, ConfigDict

from tools.evidence.files import read_result
from tools.evidence.markdown import table


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
    """

    part: str
    command: str
    machine: str | None
    measured: tuple[str, str]
    since: tuple[str, ...]
    bundle_knows_machine: bool | None = None
    variants: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()

    @property
    def when(self) -> str:
        """The days on which it was measured."""
        first, last = self.measured
        return first if first == last else f"{first} to {last}"


class Measured(_Strict):
    """A benchmark: the page it is shown on, and its runs."""

    page: str
    runs: tuple[Run, ...]


class Goals(_Strict):
    """What was aimed at.

    Attributes
    ----------
    search_overhead_ratio
        Most seconds a trial beside building and running, relative to stock's.
    ranking_top1
        Least share of the best throughput that the first of a ranking reaches.
    generated_of_long
        Least throughput of generated programs, relative to stock's after a long search.
    slower_than_pytorch
        Most networks that are slower than PyTorch.
    surrogate_correlation
        Least rank correlation of what settings reach on a surrogate and in real races.
    faster_than
        Least geometric mean of throughput relative to each engine's.
    """

    search_overhead_ratio: float
    ranking_top1: float
    generated_of_long: float
    slower_than_pytorch: int
    surrogate_correlation: float
    faster_than: dict[str, float]


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
    runs = [run for benchmark in benchmarks for run in known.benchmarks[benchmark].runs]
    rows = [_row(run) for run in runs]
    head = ["by", "what", "machine", "when", "bundle knows the machine", "changed in costlib since"]
    columns = [i for i in range(len(head)) if any(row[i] for row in rows)]
    since = {change for run in runs for change in run.since}
    changes = [f"- *{name}*: {words}" for name, words in known.changes.items() if name in since]
    return [
        "## How it was measured",
        table([head[i] for i in columns], [[row[i] for i in columns] for row in rows]),
        *(["What changed:", "\n".join(changes)] if changes else []),
    ]


def _row(run: Run) -> list[str]:
    return [
        f"`python -m {run.command}`",
        run.part,
        machine(run.machine),
        run.when,
        {True: "yes", False: "no", None: ""}[run.bundle_knows_machine],
        ", ".join(run.since) or "nothing known",
    ]
