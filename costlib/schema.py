"""The tables of a dataset: arrow schemas, what each column means, and their version.

Nothing here reads or writes. Latencies and durations are in seconds. All ids are content
ids (:mod:`costlib.identity`). See :mod:`costlib.data.dataset` for how the tables lie on disk.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pyarrow as pa

from costlib.frozen import FrozenStrict

SCHEMA_VERSION = 1
"""Raised whenever a column changes its meaning, or goes."""


class Status(StrEnum):
    """How an attempt to measure a program ended."""

    OK = "ok"
    INVALID = "invalid"
    """The decisions do not give a program that passes TVM's postprocessors."""
    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    RUN_ERROR = "run_error"
    RUN_TIMEOUT = "run_timeout"
    WRONG_OUTPUT = "wrong_output"
    """It ran, but computed something else than the unscheduled program."""


class Origin(StrEnum):
    """Where a program came from."""

    RANDOM = "random"
    EVOLVED = "evolved"
    MUTATION = "mutation"
    GENERATED = "generated"
    DIFFUSED = "diffused"
    REPEATED = "repeated"
    IMPORTED = "imported"


RECURRING = (str(Origin.IMPORTED), str(Origin.REPEATED))
"""Origins of measurements of a program that may be there already."""


class Language(StrEnum):
    """What the instructions of a sketch are written in."""

    METASCHEDULE = "metaschedule"
    ANSOR = "ansor"
    AUTOTVM = "autotvm"


class CanaryTimes(FrozenStrict):
    """Seconds of one call of each canary: now, or in the state that counts as reference."""

    compute_s: float
    memory_s: float

    def better_of(self, other: CanaryTimes) -> CanaryTimes:
        """Return the smaller time of two moments, for each canary."""
        return CanaryTimes(
            compute_s=min(self.compute_s, other.compute_s),
            memory_s=min(self.memory_s, other.memory_s),
        )


def _field(name: str, kind: Any, doc: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"doc": doc})


_ARGUMENT = pa.struct(
    [
        pa.field("dtype", pa.string(), nullable=False),
        pa.field("shape", pa.list_(pa.int64()), nullable=False),
    ]
)

WORKLOADS = pa.schema(
    [
        _field("workload_id", pa.string(), "content hash of the computation"),
        _field("name", pa.string(), "what it computes, e.g. fused_conv2d_add_relu"),
        _field("arguments", pa.list_(_ARGUMENT), "dtype and shape of each argument, results last"),
        _field("flops", pa.float64(), "floating-point operations of one call", nullable=True),
        _field(
            "mod_json",
            pa.string(),
            "the unscheduled module as TVM's JSON graph; null where a foreign log has none",
            nullable=True,
        ),
        _field(
            "mod_script",
            pa.string(),
            "the same as TVMScript, for people and other versions",
            nullable=True,
        ),
    ]
)

SKETCHES = pa.schema(
    [
        _field("sketch_id", pa.string(), "content hash of the instructions"),
        _field("language", pa.string(), "one of costlib.schema.Language"),
        _field("instructions", pa.string(), "a schedule's instructions, JSON, decisions erased"),
    ]
)

NETWORKS = pa.schema(
    [
        _field("network", pa.string(), "the network or operator that was taken apart"),
        _field("workload_id", pa.string(), "a workload it calls"),
        _field("weight", pa.int64(), "how many times it calls it"),
    ]
)

MEASUREMENTS = pa.schema(
    [
        _field("program_id", pa.string(), "content hash of workload, sketch and decisions"),
        _field("workload_id", pa.string(), "the workload it computes"),
        _field("sketch_id", pa.string(), "the sketch it fills in"),
        _field("decisions", pa.string(), "the sampled decisions of the trace, JSON"),
        _field("status", pa.string(), "one of costlib.schema.Status"),
        _field("latency_s", pa.float64(), "canary-corrected; null unless ok", nullable=True),
        _field("run_secs", pa.list_(pa.float64()), "seconds of each repeat's fastest call"),
        _field(
            "canary_compute", pa.list_(pa.float64()), "compute canary, seconds, beside each repeat"
        ),
        _field(
            "canary_memory", pa.list_(pa.float64()), "memory canary, seconds, beside each repeat"
        ),
        _field("raced", pa.bool_(), "true if repeats were saved because it could not win"),
        _field(
            "build_secs", pa.float64(), "seconds of compiling; null if not built", nullable=True
        ),
        _field("error", pa.string(), "one line on what failed", nullable=True),
        _field("origin", pa.string(), "one of costlib.schema.Origin"),
        _field("parent_id", pa.string(), "the program it is a mutation of", nullable=True),
        _field("direction", pa.string(), "the direction of that mutation", nullable=True),
        _field("seed", pa.int64(), "seed of the session that made it"),
        _field("measured_at", pa.timestamp("ms", tz="UTC"), "when"),
    ]
)

MUTATIONS = pa.schema(
    [
        _field("parent_id", pa.string(), "the program that was changed"),
        _field("direction", pa.string(), "what was changed, see DesignSpace.directions"),
        _field("program_id", pa.string(), "the child: content hash as in the measurements"),
        _field("workload_id", pa.string(), "the workload that both compute"),
        _field("sketch_id", pa.string(), "the sketch of both"),
        _field("decisions", pa.string(), "the child's decisions, JSON"),
        _field("parent_score", pa.float64(), "the cost model's score of the parent"),
        _field(
            "child_score",
            pa.float64(),
            "its score of the child; null if the child does not pass the postprocessors",
            nullable=True,
        ),
        _field("model", pa.string(), "the bundle that scored, and the hash of its files"),
    ]
)

TABLES = {
    "workloads": WORKLOADS,
    "sketches": SKETCHES,
    "networks": NETWORKS,
    "measurements": MEASUREMENTS,
    "mutations": MUTATIONS,
}

PARTITIONED = ("measurements", "mutations")
"""Tables with a folder ``hardware=<hardware_id>`` for each hardware."""
