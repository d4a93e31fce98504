"""From the folder of a run into pages: its provenance, and the result files that are complete."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from costlib.files import write_file
from costlib.hardware import Hardware
from tools.evidence.files import COMMITTED, REPOSITORY, read_result
from tools.evidence.pack import write_summaries
from tools.evidence.pages.ranking import BUNDLES, manifest
from tools.evidence.provenance import Measured, Provenance, Run, provenance
from tools.evidence.step import Step
from tools.evidence.steps import STEPS
from tools.evidence.stores import STORES
from tools.evidence.work import Work, run_of

_PROVENANCE = "provenance.json"
_ENGINES = "engines"
"""Its result file keeps the networks that a step does not measure."""

_TRIED: dict[str, Callable[[Any], int]] = {
    "coverage": lambda result: sum(len(found) for found in result["families"].values()),
    "fuzz": lambda result: sum(found["inputs"] for found in result.values()),
    "precision": lambda result: len(result["cases"]),
    "preparation": lambda result: len(result["cases"]),
    "soak": lambda result: len(result["rounds"]),
}
"""What was tried, where a result with fewer of them would say less."""


def show(work: Work, hardware: Hardware, steps: Iterable[Step]) -> None:
    """Write the pages of a run by itself into its folder."""
    known, done = provenance(), [step for step in steps if step.shown and work.is_complete(step)]
    alone = known.model_copy(update={"benchmarks": {"bundles": known.benchmarks["bundles"]}})
    _write(work.results / _PROVENANCE, with_runs(alone, work, hardware, done))
    _pages(work, "--out", str(work.pages))


def publish(work: Work, hardware: Hardware, steps: Iterable[Step]) -> list[str]:
    """Put the results that are complete in the place of the committed ones; return their files.

    The pieces of a step take the place of those that the committed file has of the same; another
    file to which several steps add is complete when all of them are. One that tried less than the
    committed one stays where it is.
    """
    files = [name for name in complete_files(work, steps) if not _says_less(work, name)]
    if files:
        done = [step for step in STEPS if step.result in files and work.is_complete(step)]
        for step in done:
            if step.pieces is not None:
                committed = replace(STORES[step.result], folder=COMMITTED)
                committed.adopt(replace(committed, folder=work.results), step.pieces)
        for name in files:
            for file in () if name in STORES else work.results.glob(f"{name}.*"):
                shutil.copyfile(file, COMMITTED / file.name)
        _write(COMMITTED / _PROVENANCE, with_runs(provenance(), work, hardware, done))
        write_summaries()
        _pages(None)
    return files


def complete_files(work: Work, steps: Iterable[Step]) -> list[str]:
    """Return the result files of which all steps of a run are complete, or the pieces of one."""
    states: dict[str, list[bool]] = {}
    for step in steps:
        if step.result:
            states.setdefault(step.result, []).append(work.is_complete(step))
    return [name for name, each in states.items() if (any if name in STORES else all)(each)]


def _says_less(work: Work, name: str) -> bool:
    committed, tried = COMMITTED / f"{name}.json", _TRIED.get(name)
    if tried is None or not committed.exists():
        return False
    new = json.loads((work.results / committed.name).read_text())
    return tried(new) < tried(json.loads(committed.read_text()))


def with_runs(
    known: Provenance, work: Work, hardware: Hardware, done: Sequence[Step]
) -> Provenance:
    """Return a provenance in which steps have taken the place of what their benchmarks had."""
    found: dict[str, list[Run]] = {}
    for step in done:
        record = work.record(step)
        assert record is not None and step.shown is not None, "it is complete"
        knows = _is_known(hardware) if step.has_bundle else None
        found.setdefault(step.shown.benchmark, []).append(run_of(step, record, knows))
    pages = {step.shown.benchmark: step.shown.page for step in done if step.shown}
    replaced = {
        name: Measured(page=pages[name], runs=(*_others(known, name, runs, done), *runs))
        for name, runs in found.items()
    }
    named = {hardware.hardware_id: f"{hardware.model} {hardware.hardware_id[-8:]}"}
    benchmarks = {**known.benchmarks, **replaced}
    changed = {change for one in benchmarks.values() for run in one.runs for change in run.since}
    return known.model_copy(
        update={
            "machines": named | known.machines,
            "changes": {name: known.changes[name] for name in known.changes if name in changed},
            "benchmarks": benchmarks,
        }
    )


def _others(
    known: Provenance, benchmark: str, new: Sequence[Run], done: Sequence[Step]
) -> list[Run]:
    """Return the runs of a benchmark that are still shown beside new ones."""
    measured = known.benchmarks.get(benchmark)
    in_pieces = any(step.pieces is not None for step in done if _is_of(step, benchmark))
    if measured is None or not (in_pieces or benchmark == _ENGINES):
        return []
    again = {(run.part, run.machine, run.commit, run.command) for run in new}
    parts = {run.part for run in new}
    return [
        run
        for run in measured.runs
        if (run.part, run.machine, run.commit, run.command) not in again
        and (run.part not in parts or _is_shown(run, benchmark, done))
    ]


def _is_shown(run: Run, benchmark: str, done: Sequence[Step]) -> bool:
    """Whether anything of the machine of a run was not measured anew in its part of a benchmark.

    That is a piece that no step has replaced, or a network beside engines.
    """
    if benchmark == _ENGINES:
        return any(
            row["hardware"] == run.machine and (not run.networks or row["name"] in run.networks)
            for row in read_result(_ENGINES)["networks"]
        )
    steps = [step for step in STEPS if _is_of(step, benchmark, run.part) and step.pieces]
    replaced = tuple(step.pieces for step in steps if step.pieces and step in done)
    return any(
        piece.hardware == run.machine
        for step in steps
        for piece in STORES[step.result].load()
        if piece.name.startswith(step.kind) and not piece.name.startswith(replaced)
    )


def _is_of(step: Step, benchmark: str, part: str | None = None) -> bool:
    shown = step.shown
    return shown is not None and shown.benchmark == benchmark and part in (None, shown.part)


def _is_known(hardware: Hardware) -> bool:
    """Whether the bundle that takes part was trained on measurements of a machine."""
    entries = manifest(BUNDLES[0])["hardware"]
    known = [Hardware.model_validate(entry["hardware"]) for entry in entries]
    return hardware.hardware_id in {one.hardware_id for one in known}


def _write(file: Path, content: Provenance) -> None:
    text = json.dumps(content.model_dump(mode="json", exclude_defaults=True), indent=1)
    write_file(file, f"{text}\n".encode())


def _pages(work: Work | None, *options: str) -> None:
    command = [sys.executable, "-m", "tools.evidence.pages", *options]
    environment = None if work is None else work.environment()
    if subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode:
        sys.exit("the pages were not written")
