"""The folder of a run of ``python -m tools.evidence``: what each step produced, and how it ended.

There is one for each commit, machine and kind of run, so that nothing in it is of another one::

    evidence_run/<quick or full>/<commit>-<hardware id>/
        results/          result files and pieces of them, as in tools/results
        steps/            a record a step
        logs/             what steps printed
        pages/            the pages of a quick run
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, date, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from costlib import __version__
from costlib.files import write_file
from tools.evidence.files import REPOSITORY
from tools.evidence.protocol import QUICK
from tools.evidence.provenance import Run
from tools.evidence.step import WORK, Step

_PACKAGES = (
    *("apache-tvm", "torch", "lightgbm", "numpy", "polars"),
    *("xgboost-cpu", "onnxruntime", "openvino"),
)


class Record(BaseModel):
    """How a step went: everything that tells whether it has to be done again, and its provenance.

    Attributes
    ----------
    state
        ``"cut off"`` if it was interrupted.
    command
        The module and its arguments.
    minutes
        That it took, with those of earlier calls that were cut off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: Literal["complete", "failed", "cut off"]
    command: str
    commit: str
    machine: str
    seeds: tuple[int, ...]
    versions: dict[str, str]
    began: date
    ended: date
    minutes: float


class Work:
    """The folder of a run.

    Parameters
    ----------
    commit, machine
        What is measured, and the id of the hardware.
    root
        Where such folders lie.
    """

    def __init__(self, commit: str, machine: str, root: Path = REPOSITORY / "evidence_run") -> None:
        self.commit, self.machine = commit, machine
        self.folder = root / ("quick" if QUICK else "full") / f"{commit}-{machine}"
        self.results = self.folder / "results"
        self.pages = self.folder / "pages"

    def arguments(self, step: Step) -> list[str]:
        """Return the command line of a step's process."""
        words = step.words()
        return [sys.executable, "-m", *(word.replace(WORK, str(self.folder)) for word in words)]

    def environment(self) -> dict[str, str]:
        """Return the environment of the processes."""
        return {**os.environ, "COSTLIB_RESULTS": str(self.results)}

    def log(self, step: Step) -> Path:
        """Return where what a step prints is kept."""
        return self.folder / "logs" / f"{step.name}.log"

    def record(self, step: Step) -> Record | None:
        """Return how a step went; ``None`` if it was never begun, or with other arguments."""
        file = self._file(step)
        found = Record.model_validate_json(file.read_text()) if file.exists() else None
        return found if found and found.command == step.command else None

    def is_complete(self, step: Step) -> bool:
        """Whether it is done."""
        found = self.record(step)
        return found is not None and found.state == "complete"

    def note(
        self, step: Step, state: Literal["complete", "failed", "cut off"], minutes: float
    ) -> Record:
        """Write down how a step went."""
        before, today = self.record(step), datetime.now(UTC).date()
        record = Record(
            state=state,
            command=step.command,
            commit=self.commit,
            machine=self.machine,
            seeds=step.seeds,
            versions=versions(),
            began=before.began if before else today,
            ended=today,
            minutes=round(minutes + (before.minutes if before else 0), 2),
        )
        write_file(self._file(step), (record.model_dump_json(indent=1) + "\n").encode())
        return record

    def _file(self, step: Step) -> Path:
        return self.folder / "steps" / f"{step.name}.json"


def versions() -> dict[str, str]:
    """Return the versions of costlib and of the packages that it is compared with or built on."""
    found = {"costlib": __version__}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def run_of(step: Step, record: Record, known: bool | None) -> Run:
    """Return what the provenance says of a step.

    Parameters
    ----------
    known
        Whether the bundle knows the machine, where that matters.
    """
    assert step.shown is not None
    return Run(
        part=step.shown.part,
        command=record.command.replace(f"{WORK}/", "evidence_run/"),
        machine=record.machine,
        measured=(record.began.isoformat(), record.ended.isoformat()),
        since=(),
        bundle_knows_machine=known,
        commit=record.commit,
        seeds=record.seeds,
        versions=record.versions,
    )
