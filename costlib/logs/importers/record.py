"""One measured program of a foreign log, in the terms of a dataset."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from costlib.hardware import Hardware
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

    Parameters
    ----------
    reason
        A few words, the same for all records that fail in the same way: they are counted.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Outcome:
    """What a log says about a measurement.

    Attributes
    ----------
    status
        How it ended.
    run_secs
        The seconds of each repeat, empty if it failed.
    error
        One line on a failure.
    """

    status: Status
    run_secs: list[float] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class ImportedRecord:
    """What one record of a log becomes.

    Attributes
    ----------
    workload
        A row of :data:`costlib.schema.WORKLOADS`.
    language
        What the sketch is written in.
    sketch, program
        The schedule.
    hardware
        What it was measured on, as far as its target says.
    outcome
        How it went.
    measured_at
        When, as far as the log says.
    """

    workload: dict[str, Any]
    language: Language
    sketch: Sketch
    program: Program
    hardware: Hardware
    outcome: Outcome
    measured_at: datetime

    def sketch_row(self) -> dict[str, Any]:
        """Return the row of :data:`costlib.schema.SKETCHES`."""
        return {
            "sketch_id": self.sketch.sketch_id,
            "language": str(self.language),
            "instructions": self.sketch.to_json(),
        }

    def measurement_row(self) -> dict[str, Any]:
        """Return the row of :data:`costlib.schema.MEASUREMENTS`.

        The latency is the mean of the repeats, as for the tuners that wrote the logs.
        """
        seconds = self.outcome.run_secs
        return {
            "program_id": self.program.program_id,
            "workload_id": self.program.workload_id,
            "sketch_id": self.program.sketch_id,
            "decisions": self.program.decisions_json(),
            "status": str(self.outcome.status),
            "latency_s": math.fsum(seconds) / len(seconds) if seconds else None,
            "run_secs": seconds,
            "canary_compute": [],
            "canary_memory": [],
            "raced": False,
            "error": self.outcome.error,
            "origin": str(Origin.IMPORTED),
            "seed": 0,
            "measured_at": self.measured_at,
        }


def outcome_of(costs: Any, error_number: Any = 0) -> Outcome:
    """Judge what a log says of a measurement.

    Parameters
    ----------
    costs
        Seconds of each repeat; for a failed program a huge number, or messages.
    error_number
        Ansor's or AutoTVM's number of the error, 0 if there was none.

    Raises
    ------
    SkippedRecordError
        The number is unknown, or a time is none.
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


def parse_json(text: str | bytes) -> Any:
    """Read JSON; raise :class:`SkippedRecordError` if it is none."""
    try:
        value = json.loads(text)
        if (b"\\u" if isinstance(text, bytes) else "\\u") in text:  # type: ignore[operator]
            json.dumps(value, ensure_ascii=False).encode()  # Half a surrogate pair fails here.
        return value
    except (ValueError, RecursionError):
        raise SkippedRecordError("not JSON, or cut off") from None
