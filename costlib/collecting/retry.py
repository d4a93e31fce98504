"""Measure programs again whose records say that they failed: perhaps it was the machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from costlib.collecting.task_state import TaskState
from costlib.data.dataset import Dataset
from costlib.data.failures import failures, replace_failures
from costlib.data.records import measurement_row
from costlib.errors import MeasureError
from costlib.measure.measurement import Candidate, Measurement
from costlib.measure.measurer import Measurer
from costlib.schema import Origin
from costlib.space.program import Program


class FailedPrograms:
    """The failed programs of tasks in a dataset, as of now.

    Parameters
    ----------
    dataset, hardware_id
        Where they are.
    states
        The tasks. A program whose sketch their spaces lack, of another TVM, is left as it is.

    Attributes
    ----------
    ids
        Of the programs that are still to be measured again.
    """

    def __init__(self, dataset: Dataset, hardware_id: str, states: Sequence[TaskState]) -> None:
        now = datetime.now(UTC)
        self._began = now.replace(microsecond=now.microsecond // 1000 * 1000)  # As recorded.
        self._dataset = dataset
        self._hardware_id = hardware_id
        self.ids = {row["program_id"] for state in states for row in self._rows(state)}

    def measure(self, state: TaskState, measurer: Measurer, most: int) -> list[Measurement]:
        """Measure some of a task's again, and let the new records take the place of the old.

        Nobody else may measure the task meanwhile.

        Returns
        -------
        list of Measurement
            Empty if none is left.
        """
        rows = self._rows(state)[:most]
        if not rows:
            return []
        programs = [
            Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"]) for row in rows
        ]
        candidates = [Candidate(program, state.space.lower(program)) for program in programs]
        try:
            measurements = measurer.measure(state.task, candidates, state.best_s)
        except MeasureError as error:
            self._replace(rows, error.finished)
            raise
        self._replace(rows, measurements)
        return measurements

    def _rows(self, state: TaskState) -> list[dict[str, Any]]:
        known = {sketch.sketch_id for sketch in state.space.sketches}
        found = failures(
            self._dataset, self._hardware_id, [state.task.workload_id], before=self._began
        )
        return [row for row in found.iter_rows(named=True) if row["sketch_id"] in known]

    def _replace(self, rows: Sequence[dict[str, Any]], measurements: Sequence[Measurement]) -> None:
        new = [
            measurement_row(
                m, row["seed"], Origin(row["origin"]), row["parent_id"], row["direction"]
            )
            for m, row in zip(measurements, rows, strict=False)
        ]
        if new:
            replace_failures(self._dataset, self._hardware_id, new)
        self.ids.difference_update(row["program_id"] for row in new)
