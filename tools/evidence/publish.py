"""From the folder of a run into pages: its provenance, and the result files that are complete."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from costlib.files import write_file
from costlib.hardware import Hardware
from tools.evidence.directions_summary import FINE
from tools.evidence.files import COMMITTED, REPOSITORY
from tools.evidence.pack import write_summaries
from tools.evidence.pages.ranking import BUNDLES, manifest
from tools.evidence.provenance import Measured, Provenance, provenance
from tools.evidence.step import Step
from tools.evidence.steps import STEPS
from tools.evidence.work import Work, run_of

_PROVENANCE = "provenance.json"

_TRIED: dict[str, Callable[[Any], int]] = {
    "coverage": lambda result: sum(len(found) for found in result["families"].values()),
    "fuzz": lambda result: sum(found["inputs"] for found in result.values()),
    "soak": lambda result: len(result["rounds"]),
    "directions": lambda result: sum(
        found[FINE].get("parents", 0) for device in result.values() for found in device.values()
    ),
}
"""What was tried, where a result with fewer of them would say less."""

_TOGETHER = {"surrogate": "search", "search": "surrogate"}
"""Files of which one is summarised with the races of the other."""


def show(work: Work, hardware: Hardware, steps: Iterable[Step]) -> None:
    """Write the pages of a run by itself into its folder."""
    known, done = provenance(), [step for step in steps if step.shown and work.is_complete(step)]
    alone = known.model_copy(update={"benchmarks": {"bundles": known.benchmarks["bundles"]}})
    _write(work.results / _PROVENANCE, with_runs(alone, work, hardware, done))
    _pages(work, "--out", str(work.pages))


def publish(work: Work, hardware: Hardware, steps: Iterable[Step]) -> list[str]:
    """Put the result files that are complete in the place of the committed ones; return them.

    A file to which several steps add is complete when all of them are. One that tried less than the
    committed one stays where it is.
    """
    files = [name for name in complete_files(work, steps) if not _says_less(work, name)]
    if files:
        for name in files:
            for file in work.results.glob(f"{name}.*"):
                shutil.copyfile(file, COMMITTED / file.name)
        done = [step for step in STEPS if step.result in files]
        _write(COMMITTED / _PROVENANCE, with_runs(provenance(), work, hardware, done))
        write_summaries()
        _pages(None)
    return files


def complete_files(work: Work, steps: Iterable[Step]) -> list[str]:
    """Return the result files of which all steps of a run are complete."""
    states: dict[str, bool] = {}
    for step in steps:
        if step.result:
            states[step.result] = states.get(step.result, True) and work.is_complete(step)
    return [
        name
        for name, is_complete in states.items()
        if is_complete and states.get(_TOGETHER.get(name, name), True)
    ]


def _says_less(work: Work, name: str) -> bool:
    committed, tried = COMMITTED / f"{name}.json", _TRIED.get(name)
    if tried is None or not committed.exists():
        return False
    new = json.loads((work.results / committed.name).read_text())
    return tried(new) < tried(json.loads(committed.read_text()))


def with_runs(
    known: Provenance, work: Work, hardware: Hardware, done: Iterable[Step]
) -> Provenance:
    """Return a provenance in which steps have taken the place of what their benchmarks had."""
    found: dict[str, Measured] = {}
    for step in done:
        record = work.record(step)
        assert record is not None and step.shown is not None, "it is complete"
        name, _, page = step.shown
        runs = found[name].runs if name in found else ()
        knows = _is_known(hardware) if step.has_bundle else None
        found[name] = Measured(page=page, runs=(*runs, run_of(step, record, knows)))
    named = {hardware.hardware_id: f"{hardware.model} {hardware.hardware_id[-8:]}"}
    benchmarks = {**known.benchmarks, **found}
    changed = {change for one in benchmarks.values() for run in one.runs for change in run.since}
    return known.model_copy(
        update={
            "machines": named | known.machines,
            "changes": {name: known.changes[name] for name in known.changes if name in changed},
            "benchmarks": benchmarks,
        }
    )


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
