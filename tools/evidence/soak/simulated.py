"""Collecting and tuning over a simulated device, with the command line's handling of errors.

    python -m tools.evidence.soak.simulated collect SOURCE... --out FOLDER --programs 64
    python -m tools.evidence.soak.simulated tune-simulated SOURCE... --out FOLDER --trials 64
    python -m tools.evidence.soak.simulated repeat SOURCE... --times 10

The last one does both, and measures a little on the real device, again and again in one process,
and prints what the process holds after each time.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer

from costlib.cli.app import app, run
from costlib.collecting import collect as collecting
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.places import held
from costlib.search.config import SearchConfig
from costlib.search.evolution.search import EvolutionConfig
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.testing.simulated import SimulatedDevice, analytic
from costlib.tuning.interrupt import Interruptible
from costlib.tuning.run import TuningRun
from costlib.tuning.trials import Trials
from costlib.workloads import Task, extract_tasks

_QUICK = SearchConfig(
    strategy=EvolutionConfig(population=64, generations=3, survivors=2, early_survivors=2, looks=1)
)
_DEVICE = "measurer_for"
"""What is exchanged in :mod:`costlib.collecting.collect`."""

_COLLECTED, _TUNED, _MEASURED = 48, 48, 4


class SimulatedMeasurer(SimulatedDevice):
    """The simulated device, opened and closed like the real one."""

    def __init__(self, *_: Any) -> None:
        super().__init__(analytic)

    def __enter__(self) -> SimulatedMeasurer:
        return self

    def __exit__(self, *_: object) -> None:
        self._builder.shutdown()


def tune_simulated(
    sources: Annotated[list[str], typer.Argument()],
    out: Annotated[Path, typer.Option()],
    trials: Annotated[int, typer.Option()],
) -> None:
    """Tune over the simulated device; called again, it goes on."""
    out.mkdir(parents=True, exist_ok=True)
    with held(out, "tuned"), Interruptible() as wish:
        why = _tune(_tasks(sources), out, trials, wish)
    print(json.dumps({"stopped": why}))


def repeat(
    sources: Annotated[list[str], typer.Argument()], times: Annotated[int, typer.Option()]
) -> None:
    """Collect and tune again and again, into folders that are thrown away."""
    tasks, held_s = _tasks(sources), []
    for _ in range(times):
        with tempfile.TemporaryDirectory() as folder, Interruptible() as wish:
            _tune(tasks, Path(folder, "run"), _TUNED, wish)
            for name, device, programs in (
                ("simulated", SimulatedMeasurer, _COLLECTED),
                ("real", Measurer, _MEASURED),
            ):
                setattr(collecting, _DEVICE, device)
                collecting.collect(tasks, Path(folder, name), programs_per_task=programs)
        gc.collect()
        held_s.append(_holds())
    print(json.dumps({key: [one[key] for one in held_s] for key in held_s[0]}))


def _tasks(sources: list[str]) -> list[Task]:
    hardware = Hardware.local()
    return [task for source in sources for task in extract_tasks(source, hardware)]


def _tune(tasks: list[Task], out: Path, trials: int, wish: Interruptible) -> str:
    hardware = Hardware.local()
    scheduler = TaskScheduler(np.ones((1, len(tasks))))
    with SimulatedMeasurer() as device:
        kept = Trials(out, hardware)
        tuning = TuningRun(tasks, scheduler, hardware, device, kept, config=_QUICK)
        why = tuning.run(trials, interrupted=wish.asked)
    if why != "all trials were spent" and not wish.asked():
        raise InputError(f"the space is too small for {trials} trials: {why}")
    return why


def _holds() -> dict[str, int]:
    """What this process holds at the moment."""
    process = psutil.Process()
    return {
        "resident_mib": process.memory_info().rss >> 20,
        "files": process.num_fds(),
        "threads": threading.active_count(),
        "processes": len(process.children(recursive=True)),
    }


if __name__ == "__main__":
    setattr(collecting, _DEVICE, SimulatedMeasurer)
    app.command()(tune_simulated)
    app.command()(repeat)
    sys.exit(run())
