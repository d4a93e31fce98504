"""What a run keeps from session to session: whose it is, its trials, and what its tasks were.

All of this is settled before anything is timed: which dataset measurements go to, which state of
the machine they are corrected to, and, once they were timed untuned, which tasks are tuned. A
session that goes on with a run finds these as they were.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from costlib.errors import InputError
from costlib.files import remove_stale, storage_errors, write_json
from costlib.frozen import FrozenStrict
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.places import check_writable, refuse_others
from costlib.tuning.database import RECORDS, WORKLOADS
from costlib.tuning.result import RESULT
from costlib.tuning.trials import BATCHES, TRIALS, Trials
from costlib.tuning.untuned import untuned_latencies, worth_tuning
from costlib.workloads.task import Task

RUN = "run.json"
TASKS = "tasks.json"
_COLD = "cold_weights"
_POINTS_FOR = "points_for_trials"

OUTPUTS = (TASKS, RESULT, BATCHES, WORKLOADS, RECORDS)
"""What else a run writes that could be somebody else's, such as a database of MetaSchedule."""


class Baseline(FrozenStrict):
    """A run's tasks before it began.

    Attributes
    ----------
    untuned_s
        Seconds of each task's unscheduled program, by workload id; ``None`` if it does not run.
    chosen
        Workload ids of the tasks that are tuned.
    """

    untuned_s: dict[str, float | None]
    chosen: tuple[str, ...]


class Session:
    """A run's folder while somebody is at work in it.

    Parameters
    ----------
    folder
        The folder; made if it does not exist.
    networks, hardware, seed
        What the run is of; another session must say the same.
    resume
        Whether it goes on with the run that is there.
    cold
        Whether tasks are measured with weights from memory; another session must do the same.
    has_ranges, points_for
        Whether networks have ranges, and for how many trials their points were chosen, ``None``
        being the usual ones; another session has the same points.

    Attributes
    ----------
    trials
        The measurements.

    Raises
    ------
    InputError
        See :func:`check_place`; or the folder holds another run.
    StorageError
        It cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        networks: Sequence[str],
        hardware: Hardware,
        seed: int,
        *,
        resume: bool = False,
        cold: bool = False,
        has_ranges: bool = False,
        points_for: int | None = None,
    ) -> None:
        self.folder = folder
        self.hardware = hardware
        settings: dict[str, Any] = {
            "networks": list(networks),
            "hardware_id": hardware.hardware_id,
            "seed": seed,
        }
        if cold:
            settings[_COLD] = True
        if has_ranges:
            settings[_POINTS_FOR] = points_for
        check_place(folder, resume=resume)
        is_noted = _is_noted(folder, settings)
        remove_stale(folder)
        self.trials = Trials(folder, hardware, seed)
        if not is_noted:
            self.trials.check_settings()
            write_json(folder / RUN, settings)

    def baseline(self, tasks: Sequence[Task], measurer: Measurer, trials: int) -> Baseline:
        """Time tasks that were not timed yet, and choose those that are worth tuning.

        A task that was chosen once stays so; a larger budget may add others.

        Parameters
        ----------
        tasks
            All tasks of the networks.
        measurer
            Times them, corrected to the state of the machine that the run refers to.
        trials
            Programs to measure in all.
        """
        noted = self.trials.reference()
        measurer.reference = noted or self.trials.keep_reference(measurer.reference)
        earlier = self._earlier()
        known = dict(earlier.untuned_s)
        missing = [task for task in tasks if task.workload_id not in known]
        for task, latency_s in zip(missing, untuned_latencies(missing, measurer), strict=True):
            known[task.workload_id] = latency_s
        untuned_s = [known[task.workload_id] for task in tasks]
        worth = worth_tuning(tasks, untuned_s, self.hardware, trials)
        names = {*earlier.chosen, *(tasks[number].workload_id for number in worth)}
        baseline = Baseline(untuned_s=known, chosen=_in_order(tasks, names))
        if baseline != earlier:
            write_json(self.folder / TASKS, baseline.model_dump(mode="json"))
        return baseline

    def _earlier(self) -> Baseline:
        """What an earlier session noted; nothing if none has, or if that is damaged.

        Tasks that were measured are tuned ones, whatever a costlib noted that knew no better.
        """
        measured = self.trials.dataset.scan().select("workload_id").unique().collect()
        try:
            found = Baseline.model_validate_json((self.folder / TASKS).read_bytes())
        except (OSError, ValidationError):
            found = Baseline(untuned_s={}, chosen=())
        chosen = {*found.chosen, *measured["workload_id"]}
        return found.model_copy(update={"chosen": tuple(sorted(chosen))})


def _in_order(tasks: Sequence[Task], names: Iterable[str]) -> tuple[str, ...]:
    wanted = set(names)
    return tuple(task.workload_id for task in tasks if task.workload_id in wanted)


def as_begun(folder: Path, config: MeasureConfig) -> MeasureConfig:
    """Return how a run is measured: one that began with warm weights goes on with them.

    So did all runs of older versions. A folder that holds no run, or one that cannot be read, says
    nothing.
    """
    noted = _noted(folder)
    if noted is None:
        return config
    is_cold = config.cold_weights and bool(noted.get(_COLD))
    return config.model_copy(update={"cold_weights": is_cold})


def points_for(folder: Path, trials: int | None) -> int | None:
    """Return for how many trials points of ranges are chosen: as many as the run began with."""
    found = (_noted(folder) or {}).get(_POINTS_FOR, trials)
    return found if found is None or (isinstance(found, int) and found > 0) else trials


def _noted(folder: Path) -> dict[str, Any] | None:
    """Return what a folder is noted to be a run of; ``None`` if it says nothing."""
    try:
        noted = json.loads((folder / RUN).read_text(errors="replace"))
    except (OSError, ValueError):
        return None
    return noted if isinstance(noted, dict) else None


def check_place(folder: Path, *, resume: bool) -> None:
    """Refuse a folder that a run cannot go to, before anything is loaded for it.

    Raises
    ------
    InputError
        It holds something else; or a run, and ``resume`` is not given; or none, and it is.
    StorageError
        It cannot be written.
    """
    refuse_others(folder, "a run")
    if _holds_run(folder):
        if not resume:
            raise InputError(
                f"{folder} holds a run; --resume goes on with it, or choose another folder"
            )
    elif resume:
        raise InputError(f"{folder} holds no run to go on with; leave --resume out to begin one")
    elif left := sorted(name for name in OUTPUTS if (folder / name).exists()):
        raise InputError(f"{folder} holds no run, but {left[0]}; choose another folder")
    check_writable(folder)


def _holds_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in (RUN, TRIALS))


def _is_noted(folder: Path, settings: dict[str, Any]) -> bool:
    """See whether a folder is noted to be of this run; ``False`` if no note can be read."""
    file = folder / RUN
    with storage_errors(folder):
        text = file.read_text(errors="replace") if file.exists() else ""
    try:
        noted = json.loads(text)
    except ValueError:
        return False
    if noted != settings:
        raise InputError(
            f"{folder} holds a run of {' '.join(text.split())}, not of {json.dumps(settings)}; "
            "choose another folder"
        )
    return True
