"""New hardware in minutes: measure what teaches a bundle's models most about it, and teach them.

The models are taught several times, after a quarter, a half and all of the time. What they have
learnt chooses what is measured next; how good each was is a curve: quality by minutes. Killed at
any moment, the next call goes on: what was measured is in a dataset beside the bundle.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costlib.collecting.adapted import KEY, adapted_of, earlier_points, summed_up
from costlib.collecting.collect import CollectProgress
from costlib.collecting.ledger import Ledger, Point
from costlib.collecting.lessons import Lessons
from costlib.data.card import write_card
from costlib.errors import BundleError, DatasetError, InputError
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle, check_place, holds_bundle
from costlib.hub.catalog import DEFAULT_BUNDLE, load_pretrained
from costlib.hub.fine_tuning import FineTuning, fine_tune, fine_tuning_of
from costlib.measure.config import MeasureConfig
from costlib.places import held
from costlib.training.sides import sides_of

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet

_MARKS = (0.25, 0.5, 1.0)
"""Shares of the time after which the models are taught."""

_TEACHING = 0.15
"""Share of the time until a mark that teaching is expected to take, before it was ever timed."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AdaptProgress:
    """Where an adaptation stands.

    Attributes
    ----------
    what
        What is done: a task is measured, or the models are taught.
    spent_s, total_s
        Seconds spent by all calls, and wanted.
    programs, expected
        How many are measured, and about how many will be.
    """

    what: str
    spent_s: float
    total_s: float
    programs: int
    expected: int


def adapt(
    out: str | Path,
    *,
    minutes: float = 15,
    bundle: Bundle | str | Path = DEFAULT_BUNDLE,
    hardware: Hardware | None = None,
    seed: int = 0,
    config: MeasureConfig | None = None,
    fleet: Fleet | None = None,
    on_progress: Callable[[AdaptProgress], None] | None = None,
) -> Bundle:
    """Teach a bundle a machine that it does not know, or does not know well.

    Called again with the same arguments it goes on until the minutes are spent, all calls
    together; with more minutes, from there. What is measured goes to the dataset ``OUT-data``.

    Parameters
    ----------
    out
        The new bundle's folder.
    minutes
        How long measuring and teaching may take.
    bundle
        What to start from.
    hardware
        What to measure; this machine's CPU with all its cores, or what the fleet is, if not given.
    seed
        Decides which tasks and programs.
    config
        Repeats, limits and racing.
    fleet
        Measure on its devices.
    on_progress
        Called after each batch.

    Returns
    -------
    Bundle
        :func:`costlib.collecting.adapted.adapted_of` says what was measured and gives the curve,
        :func:`costlib.hub.fine_tuning.fine_tuning_of` how it compares with the one it started
        from. It is never worse.

    Raises
    ------
    InputError
        The minutes were too few to compare anything, or an earlier call was about something else.
    BundleError
        What is at ``out`` was not adapted here, or ``bundle`` is of another version.
    MeasureError
        The machine fails. What was measured before is kept.
    KeyboardInterrupt
        Ctrl-C was pressed. What was measured before is kept.
    """
    if not minutes > 0:
        raise InputError(f"{minutes:g} minutes were given; it must be more than 0")
    start = bundle if isinstance(bundle, Bundle) else load_pretrained(bundle)
    start.statement_model()
    hardware = hardware or (fleet.only_hardware() if fleet else Hardware.local())
    start.check_kind(hardware)
    out = Path(out)
    work = out.with_name(f".{out.name}-adapting")
    if not holds_bundle(out):
        check_place(out)
    elif adapted_of(Bundle.load(out)) is None or not work.is_dir():
        raise BundleError(f"{out} holds a bundle that was not adapted here; choose another folder")
    name = start.name if isinstance(bundle, Bundle) else str(bundle)
    command = ["costlib", "adapt", "--minutes", f"{minutes:g}", "--pretrained", name]
    with held(work, "adapted"):
        ledger = Ledger(work, start, hardware.hardware_id, seed)
        lessons = Lessons(data_of(out), ledger, start, hardware, seed, config, fleet)
        return _Course(
            out,
            ledger,
            lessons,
            start,
            hardware.hardware_id,
            60 * minutes,
            shlex.join([*command, "--out", str(out), "--seed", str(seed)]),
            on_progress,
        ).run()


def data_of(out: Path) -> Path:
    """Return the folder of the dataset that an adaptation's measurements go to."""
    return out.with_name(f"{out.name}-data")


class _Course:
    """An adaptation at work."""

    def __init__(
        self,
        out: Path,
        ledger: Ledger,
        lessons: Lessons,
        start: Bundle,
        hardware_id: str,
        total_s: float,
        command: str,
        on_progress: Callable[[AdaptProgress], None] | None,
    ) -> None:
        self._out = out
        self._ledger = ledger
        self._lessons = lessons
        self._start = start
        self._hardware_id = hardware_id
        self._total_s = total_s
        self._command = command
        self._on_progress = on_progress
        self._taught_s: float | None = None
        self._first = ledger.spent_s, self._programs()

    def run(self) -> Bundle:
        """Measure and teach until the time is over."""
        bundle = Bundle.load(self._out) if holds_bundle(self._out) else None
        done_s = 60 * max((point.mark for point in self._ledger.state.points), default=0.0)
        marks = [one for one in (share * self._total_s for share in _MARKS) if one > done_s]
        if not marks and bundle is not None:
            _log.warning("all %g minutes are spent; more of them go on", self._total_s / 60)
            return bundle
        for mark_s in marks:
            until_s = mark_s - self._reserved_s(mark_s)
            while self._ledger.spent_s < until_s:
                self._tell("preparing tasks")
                self._lessons.go_on(bundle or self._start, until_s, self._measured)
            try:
                bundle = self._taught(mark_s)
            except DatasetError:  # There is nothing to compare yet.
                if mark_s == marks[-1]:
                    raise InputError(self._too_little()) from None
        assert bundle is not None
        write_card(self._lessons.dataset)
        found = adapted_of(bundle)
        if found is not None and found.doubt:
            _log.warning("%s", found.doubt)
        return bundle

    def _taught(self, mark_s: float) -> Bundle:
        """Teach the models what was measured by now; write the bundle, and note the point."""
        self._tell("teaching the models")
        began_s = self._ledger.spent_s
        dataset = self._lessons.dataset
        apart = self._ledger.apart
        if self._hardware_id not in dataset.hardware():
            raise DatasetError(f"{dataset.path} has no measurement of {self._hardware_id}")
        sides_of(dataset, [self._hardware_id], apart=apart)  # Refuses what is too little.
        earlier = earlier_points(self._ledger, self._start, dataset)

        def notes(tuning: FineTuning) -> Mapping[str, Any]:
            minutes = self._ledger.spent_s / 60
            found = summed_up(tuning, earlier, minutes, dataset, self._hardware_id)
            return {KEY: found.model_dump(mode="json")}

        bundle = fine_tune(
            dataset,
            self._out,
            start=self._start,
            hardware=[self._hardware_id],
            apart=apart,
            seed=self._ledger.state.seed,
            command=self._command,
            notes=notes,
            replace=True,
        )
        tuning = fine_tuning_of(bundle)
        assert tuning is not None
        self._ledger.note_point(
            Point(
                mark=mark_s / 60,
                minutes=self._ledger.spent_s / 60,
                programs=tuning.programs,
                tasks=tuning.tasks,
            ),
            bundle,
        )
        self._taught_s = self._ledger.spent_s - began_s
        return bundle

    def _reserved_s(self, mark_s: float) -> float:
        """How long teaching will take, to be over at a mark."""
        guess = _TEACHING * mark_s
        return guess if self._taught_s is None else min(1.5 * self._taught_s, 2 * guess)

    def _measured(self, progress: CollectProgress) -> None:
        self._ledger.note()
        self._tell(f"measuring {progress.task}")

    def _tell(self, what: str) -> None:
        if self._on_progress is None:
            return
        spent_s, programs = self._ledger.spent_s, self._programs()
        began_s, before = self._first
        left_s = (1 - _TEACHING) * max(0.0, self._total_s - spent_s)
        rate = (programs - before) / max(spent_s - began_s, 1e-9)
        expected = programs + round(rate * left_s)
        self._on_progress(AdaptProgress(what, spent_s, self._total_s, programs, expected))

    def _programs(self) -> int:
        return len(self._lessons.dataset.measured(self._hardware_id))

    def _too_little(self) -> str:
        return (
            f"{self._total_s / 60:g} minutes were too few to compare anything; the "
            f"{self._programs()} programs measured are in {self._lessons.dataset.path}, "
            f"`--minutes {max(15, round(2 * self._total_s / 60))}` goes on with them"
        )
