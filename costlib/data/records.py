"""A measurement as a row of a dataset, and back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from costlib.measure.measurement import Measurement
from costlib.schema import CacheState, Origin, Status
from costlib.space.program import Program


def measurement_row(
    measurement: Measurement,
    seed: int,
    origin: Origin,
    parent_id: str | None = None,
    direction: str | None = None,
) -> dict[str, Any]:
    """Return a row for :meth:`costlib.data.dataset.Dataset.append_measurements`.

    It was measured now; ``seed`` is that of the collection or the run.
    """
    program = measurement.program
    return {
        "program_id": program.program_id,
        "workload_id": program.workload_id,
        "sketch_id": program.sketch_id,
        "decisions": program.decisions_json(),
        "status": str(measurement.status),
        "latency_s": measurement.latency_s,
        "run_secs": list(measurement.run_secs),
        "canary_compute": list(measurement.canary_compute),
        "canary_memory": list(measurement.canary_memory),
        "raced": measurement.raced,
        "build_secs": measurement.build_secs,
        "error": measurement.error,
        "origin": str(origin),
        "parent_id": parent_id,
        "direction": direction,
        "seed": seed,
        "measured_at": datetime.now(UTC),
        "cache": str(measurement.cache),
    }


def measurement_of(row: Mapping[str, Any]) -> Measurement:
    """Return the measurement that a row of a dataset tells of."""
    return Measurement(
        Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"]),
        Status(row["status"]),
        latency_s=row["latency_s"],
        run_secs=tuple(row["run_secs"]),
        canary_compute=tuple(row["canary_compute"] or ()),
        canary_memory=tuple(row["canary_memory"] or ()),
        raced=row["raced"],
        build_secs=row["build_secs"],
        error=row["error"],
        cache=CacheState(row["cache"]),
    )
