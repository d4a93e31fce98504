"""TensorBoard event files of a tuning run or of a training, written while it goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costlib.errors import InputError
from costlib.files import storage_errors
from costlib.places import check_writable

if TYPE_CHECKING:
    from costlib.tuning.progress import TuneProgress


TUNED = "tuned_tasks_ms"
"""The sum of the best programs of all tasks that have one, weighted by their calls."""

JUDGED = ("top1", "top5", "pairwise_accuracy")
"""What a trained model is judged by; its page has the rest."""


class EventFile(AbstractContextManager["EventFile"]):
    """A file of scalars; TensorBoard shows each folder with one as a run. A context manager.

    The file is made for the first value.

    Raises
    ------
    InputError
        TensorBoard is not installed.
    StorageError
        The folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.summary import Writer
        except ImportError:
            raise InputError(
                "--tensorboard needs TensorBoard: pip install 'costlib[tensorboard]'"
            ) from None
        check_writable(folder)
        self._folder = folder
        self._new_writer = Writer
        self._opened: Any = None
        self._trials = self._failed = 0
        self._best_s: dict[int, float] = {}

    def __exit__(self, *_: object) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _writer(self) -> Any:
        if self._opened is None:
            with storage_errors(self._folder):
                self._folder.mkdir(parents=True, exist_ok=True)
                self._opened = self._new_writer(str(self._folder))
        return self._opened

    def tell(self, name: str, step: int, value: float) -> None:
        """Write one value."""
        self._writer.add_scalar(name, value, step=step)

    def settings(self, settings: Mapping[str, str | float], metrics: Sequence[str]) -> None:
        """Write what a run was given, and which values to judge it by: TensorBoard's HParams.

        Parameters
        ----------
        settings
            Its hyperparameters.
        metrics
            Names of values that :meth:`tell` is told.
        """
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.hparams import summary_v2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        shown = dict(settings)
        columns = [summary_v2.Metric(name) for name in metrics]
        params = [summary_v2.HParam(name) for name in shown]
        with storage_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            writer = EventFileWriter(str(self._folder), filename_suffix=".settings")
            for summary in (
                summary_v2.hparams_config_pb(params, columns),
                summary_v2.hparams_pb(shown, trial_id=self._folder.resolve().name),
            ):
                writer.add_event(Event(summary=summary, wall_time=time.time()))
            writer.close()

    def metrics(self, metrics: Mapping[str, Any]) -> None:
        """Write what a model was judged by in the end."""
        for name in JUDGED:
            if name in metrics:
                self.tell(f"judged/{name}", 0, float(metrics[name]))
        self._writer.flush()

    def tuning(self, progress: TuneProgress) -> None:
        """Write the trials of a run that are new, by names that are the same in every run."""
        new = progress.curve[self._trials :]
        for point in new:
            self._trials += 1
            if point.best_s is not None:
                self._best_s[point.task] = point.best_s
                if point.latency_s is not None:
                    self.tell("trial/latency_by_best", self._trials, point.latency_s / point.best_s)
            self._failed += point.latency_s is None
            known = (progress.tasks[task].weight * s for task, s in self._best_s.items())
            self.tell(TUNED, self._trials, 1e3 * sum(known))
            self.tell("trial/failed", self._trials, self._failed)
        if new:
            self.tell("seconds/search", self._trials, progress.search_s)
            self.tell("seconds/measure", self._trials, progress.measure_s)
            self._writer.flush()
