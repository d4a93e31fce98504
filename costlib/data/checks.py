"""What must hold for the rows of a dataset, as masks over a frame of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from costlib.canary_times import CanaryTimes
from costlib.data.manifest import HardwareFile
from costlib.hardware import Hardware
from costlib.identity import content_id
from costlib.measure.correction import corrected_latency
from costlib.schema import RECURRING, CacheState, Origin, Status

CANARY_RANGE = 20.0
"""A canary further from its reference than this factor, either way, is absurd."""

LABEL_TOLERANCE = 1e-6
"""Relative difference allowed between a latency and what its repeats and canaries give."""

_CLOCK_HZ = 6e9
_PEAK_SLACK = 50
"""TVM also counts operations on padding, which compilers leave out; a global pooling of
``datasets/zoo`` seems to do 17 times what the processor can."""

MEND_ROWS = "remove that file; `costlib collect` on the same tasks brings back what is missing"
MEND_IDS = "run `costlib collect` on the same tasks again, it adds what is missing"


@dataclass(frozen=True)
class Check:
    """``mask`` is true in the rows that ``what`` is said of."""

    what: str
    mask: pl.Expr | pl.Series
    mend: str = MEND_ROWS


def may_recur() -> pl.Expr:
    """Rows whose program may be there more than once: of foreign logs, and second looks."""
    return pl.col("origin").is_in(RECURRING)


def measurement_checks(workloads: Set[str], sketches: Set[str]) -> list[Check]:
    """Return what must hold for measurements by themselves."""
    ok = pl.col("status") == str(Status.OK)
    latency = pl.col("latency_s").cast(pl.Float64)
    positive = (latency.is_finite() & (latency > 0)).fill_null(False)
    timed = pl.col("run_secs").list.eval(
        (pl.element().is_finite() & (pl.element() > 0)).fill_null(False)
    )
    has_times = (pl.col("run_secs").list.len() > 0) & timed.list.all()
    return [
        Check("ran, but have no positive latency", ok & ~positive),
        Check("ran, but have no positive times in run_secs", ok & ~has_times),
        Check("failed, but have a latency", ~ok & latency.is_not_null()),
        Check("have an unknown status", not_in("status", Status)),
        Check("have an unknown origin", not_in("origin", Origin)),
        Check("have an unknown state of the caches", not_in("cache", CacheState)),
        *reference_checks(workloads, sketches),
    ]


def mutation_checks(workloads: Set[str], sketches: Set[str], parents: Set[str]) -> list[Check]:
    """Return what must hold for mutation records by themselves."""
    return [
        Check("have a score that is no number", ~_finite("parent_score") | ~_finite("child_score")),
        Check("are of a parent that was not measured", not_in("parent_id", parents), MEND_IDS),
        *reference_checks(workloads, sketches),
    ]


def reference_checks(workloads: Set[str], sketches: Set[str]) -> list[Check]:
    """Return that what rows refer to is there."""
    return [
        Check("are of a workload that is not there", not_in("workload_id", workloads), MEND_IDS),
        Check("are of a sketch that is not there", not_in("sketch_id", sketches), MEND_IDS),
    ]


def not_in(column: str, values: Iterable[str]) -> pl.Expr:
    """Rows whose value is not among ``values``."""
    return ~pl.col(column).is_in([str(value) for value in values])


def timing_checks(
    frame: pl.DataFrame, machine: HardwareFile, flops: Mapping[str, float]
) -> Iterator[Check]:
    """Yield that latencies follow from what was timed on a machine.

    Where canaries say that it is a machine we know, also that it can be so fast, given the
    operations of those workloads where they are known, and that canaries are somewhere near
    their reference.
    """
    columns = ("latency_s", "run_secs", "canary_compute", "canary_memory")
    wrong = [
        _contradicts(latency_s, run_secs, compute, memory, machine.canary)
        for latency_s, run_secs, compute, memory in frame.select(columns).iter_rows()
    ]
    yield Check("have a latency that run_secs and the canaries do not give", _marks(wrong))
    hardware, reference = machine.hardware, machine.canary
    if reference is None:
        return
    if hardware.kind == "cpu":
        fastest = _most_per_second(hardware) or math.inf
        pairs = frame.select("workload_id", "latency_s").iter_rows()
        too_fast = [
            latency_s is not None and 0 < latency_s < flops.get(workload, 0.0) / fastest
            for workload, latency_s in pairs
        ]
        yield Check("are faster than any machine with those cores can be", _marks(too_fast))
    for kind, expected in (("compute", reference.compute_s), ("memory", reference.memory_s)):
        usual = (pl.element() / expected).is_between(1 / CANARY_RANGE, CANARY_RANGE)
        yield Check(
            f"have a {kind} canary over {CANARY_RANGE:g} times off its reference of {expected} s",
            pl.col(f"canary_{kind}").list.eval(~usual.fill_null(False)).list.any(),
        )


def named_by_program(frame: pl.DataFrame) -> Check:
    """Return that program ids are the hashes of the programs."""
    rows = frame.select("program_id", "workload_id", "sketch_id", "decisions").iter_rows()
    wrong = [not hashes_to(name, context, text) for name, *context, text in rows]
    return Check("have an id that is not the hash of the program", _marks(wrong))


def misnamed_modules(frames: Sequence[pl.DataFrame]) -> list[pl.Series]:
    """Mark workloads whose module TVM cannot read, or whose id is not the hash of it.

    A dataset has many parts of few workloads, and a child process costs more than its modules:
    one reads those of all ``frames``.
    """
    from costlib.tvm_compat.api import module_from_json
    from costlib.tvm_compat.guard import checked
    from costlib.workloads.task import workload_id

    def is_named(row: tuple[str, str | None]) -> bool:
        name, text = row
        return text is None or workload_id(module_from_json(text)) == name

    rows = [row for f in frames for row in f.select("workload_id", "mod_json").iter_rows()]
    sound = iter(checked(is_named, rows))
    return [_marks([not one for one in islice(sound, len(frame))]) for frame in frames]


def hashes_to(name: str, context: Sequence[str], text: str) -> bool:
    """Say whether ``name`` is the id of JSON text in its context."""
    try:
        return content_id(*context, json.loads(text)) == name
    except ValueError:
        return False


def repeated(ids: Iterable[Any], seen: set[Any]) -> pl.Series:
    """Mark ids that were seen before, and add all of them to ``seen``."""
    marks = []
    for row_id in ids:
        marks.append(row_id in seen)
        seen.add(row_id)
    return _marks(marks)


def _finite(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.Float64).is_finite().fill_null(True)


def _contradicts(
    latency_s: float | None,
    run_secs: list[float],
    compute: list[float],
    memory: list[float],
    reference: CanaryTimes | None,
) -> bool:
    """Say whether a latency is not what was timed; what other checks name is passed over."""
    if latency_s is None or not _are_times([latency_s, *run_secs]) or not run_secs:
        return False
    slack = 1 + LABEL_TOLERANCE
    if reference is None or not compute or not memory:
        return not min(run_secs) / slack <= latency_s <= max(run_secs) * slack
    if not _are_times([*compute, *memory]):
        return False
    expected_s = corrected_latency(run_secs, compute, memory, reference)
    return not expected_s / slack <= latency_s <= expected_s * slack


def _are_times(seconds: Iterable[float | None]) -> bool:
    return all(one is not None and math.isfinite(one) and one > 0 for one in seconds)


def _most_per_second(hardware: Hardware) -> float:
    """More operations a second than the cores can do: two fused ones on bytes, per cycle."""
    lanes = hardware.vector_bits / 8
    return hardware.num_cores * lanes * 2 * 2 * _CLOCK_HZ * _PEAK_SLACK


def _marks(values: list[bool]) -> pl.Series:
    return pl.Series(values, dtype=pl.Boolean)
