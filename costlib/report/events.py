"""TensorBoard event files of a tuning run or of a training, written while it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costlib.errors import InputError
from costlib.files import storage_errors
from costlib.places import check_writable

if TYPE_CHECKING:
    from costlib.tuning.progress import TuneProgress


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
        self._trials = 0

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

    def metrics(self, metrics: Mapping[str, Any], prefix: str = "metrics") -> None:
        """Write what a model was judged by."""
        for name, value in metrics.items():
            if isinstance(value, Mapping):
                self.metrics(value, f"{prefix}/{name}")
            elif isinstance(value, (int, float)):
                self.tell(f"{prefix}/{name}", 0, float(value))
        self._writer.flush()

    def tuning(self, progress: TuneProgress) -> None:
        """Write the trials of a run that are new."""
        new = progress.curve[self._trials :]
        for trial, point in enumerate(new, start=self._trials + 1):
            if point.latency_s is not None:
                task = progress.tasks[point.task]
                name = f"{task.name}-{task.workload_id[:6]}"
                self.tell(f"latency_ms/{name}", trial, 1e3 * point.latency_s)
        self._trials += len(new)
        if not new:
            return
        known = [
            task.weight * best_s
            for task, best_s in zip(progress.tasks, progress.best_s, strict=True)
            if best_s is not None
        ]
        self.tell("tuned_tasks_ms", self._trials, 1e3 * sum(known))
        self.tell("seconds/search", self._trials, progress.search_s)
        self.tell("seconds/measure", self._trials, progress.measure_s)
        self._writer.flush()
