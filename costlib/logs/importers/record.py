"""One measured program of a foreign log, in the terms of a dataset."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from costlib.data.records import measurement_row
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.measure.measurement import Measurement
from costlib.schema import Language, Origin, Status
from costlib.space.program import Program, Sketch

_FAILED_SECS = 1e9
"""Ansor and MetaSchedule log 1e10 for a program that failed, AutoTVM 1e9."""

_STATUS_OF_ERROR = {
    0: Status.OK,
    1: Status.INVALID,
    2: Status.BUILD_ERROR,
    3: Status.BUILD_ERROR,
    4: Status.RUN_ERROR,
    5: Status.WRONG_OUTPUT,
    6: Status.BUILD_TIMEOUT,
    7: Status.RUN_TIMEOUT,
    8: Status.RUN_ERROR,
}
"""What the error numbers of Ansor and AutoTVM, which are the same, mean."""


class SkippedRecordError(Exception):
    """A record that cannot be imported.

    ``reason`` is a few words, the same for all that fail in the same way: they are counted.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Outcome:
    """What a log says about a measurement; ``run_secs`` is empty if it failed."""

    status: Status
    run_secs: list[float] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class ImportedRecord:
    """What one record of a log becomes; as far as the log says, where and when it was measured.

    ``workload`` is a row of :data:`costlib.schema.WORKLOADS`.
    """

    workload: dict[str, Any]
    language: Language
    sketch: Sketch
    decisions: list[Any]
    hardware: Hardware
    outcome: Outcome
    measured_at: datetime

    @cached_property
    def program(self) -> Program:
        """The schedule."""
        return Program(self.workload["workload_id"], self.sketch.sketch_id, self.decisions)

    def measurement_row(self) -> dict[str, Any]:
        """Return the row of :data:`costlib.schema.MEASUREMENTS`.

        The latency is the mean of the repeats, as for the tuners that wrote the logs.
        """
        seconds = self.outcome.run_secs
        measurement = Measurement(
            self.program,
            self.outcome.status,
            latency_s=math.fsum(seconds) / len(seconds) if seconds else None,
            run_secs=tuple(seconds),
            error=self.outcome.error,
        )
        row = measurement_row(measurement, seed=0, origin=Origin.IMPORTED)
        return row | {"measured_at": self.measured_at}


def row_without_module(
    language: Language, key: Any, name: str, arguments: list[Any], tensors: list[dict[str, Any]]
) -> dict[str, Any]:
    """Describe a workload of which a log has a key, but no module."""
    return {
        "workload_id": content_id(str(language), key),
        "name": f"{name}({', '.join(map(json.dumps, arguments))})",
        "arguments": tensors,
    }


def outcome_of(costs: Any, error_number: Any = 0) -> Outcome:
    """Judge what a log says of a measurement; raise :class:`SkippedRecordError`.

    Parameters
    ----------
    costs
        Seconds of each repeat; for a failed program a huge number, or messages.
    error_number
        Ansor's or AutoTVM's number of the error, 0 if there was none.
    """
    if not isinstance(costs, list) or type(error_number) is not int:
        raise SkippedRecordError("the result is malformed")
    status = _STATUS_OF_ERROR.get(error_number)
    if status is None:
        raise SkippedRecordError("the error number is unknown")
    if status is not Status.OK:
        return Outcome(status, error=f"the log gives error number {error_number}")
    if any(type(cost) not in (int, float) or math.isnan(cost) for cost in costs):
        raise SkippedRecordError("a cost is not a number")
    if not costs or max(costs) >= _FAILED_SECS:
        return Outcome(Status.RUN_ERROR, error="the log gives no time and no reason")
    if min(costs) <= 0:
        raise SkippedRecordError("a cost is not positive")
    return Outcome(Status.OK, [float(cost) for cost in costs])


def moment(timestamp: Any, otherwise: datetime) -> datetime:
    """Return when a record was made: seconds since 1970, or the file's time if they are off."""
    try:
        found = datetime.fromtimestamp(timestamp, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return otherwise
    return found if timestamp > 0 else otherwise
