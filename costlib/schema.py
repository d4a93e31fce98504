"""The tables of a dataset: arrow schemas, what each column means, and their version.

Nothing here reads or writes. Latencies and durations are in seconds. All ids are content
ids (:mod:`costlib.identity`). See :mod:`costlib.data.dataset` for how the tables lie on disk.
"""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa

SCHEMA_VERSION = 1
"""Raised whenever a column changes its meaning, or goes."""


class Status(StrEnum):
    """How an attempt to measure a program ended."""

    OK = "ok"
    INVALID = "invalid"
    """The decisions give no program that passes TVM's postprocessors, or one that the device
    cannot launch or that would not be worth it: it was not run."""
    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    RUN_ERROR = "run_error"
    RUN_TIMEOUT = "run_timeout"
    WRONG_OUTPUT = "wrong_output"
    """It ran, but computed something else than the unscheduled program."""


class CacheState(StrEnum):
    """What a program finds in the caches when it is called."""

    WARM = "warm"
    """All that it read or wrote before, as far as that fits."""
    COLD_WEIGHTS = "cold_weights"
    """The same but for the constants of its network, which come from memory."""


class Origin(StrEnum):
    """Where a program came from."""

    RANDOM = "random"
    EVOLVED = "evolved"
    MUTATION = "mutation"
    GENERATED = "generated"
    DIFFUSED = "diffused"
    REPEATED = "repeated"
    CHECKED = "checked"
    IMPORTED = "imported"


RECURRING = (str(Origin.IMPORTED), str(Origin.REPEATED), str(Origin.CHECKED))
"""Origins of measurements of a program that may be there already."""


CONFIRMED = " (a program that is known to be good ran meanwhile)"
"""How the error of a program ends that failed together with the whole batch, the machine not."""


class Language(StrEnum):
    """What the instructions of a sketch are written in."""

    METASCHEDULE = "metaschedule"
    ANSOR = "ansor"
    AUTOTVM = "autotvm"


def _field(name: str, kind: pa.DataType, doc: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"doc": doc})


def _optional(name: str, kind: pa.DataType, doc: str) -> pa.Field:
    return _field(name, kind, doc, nullable=True)


_TEXT, _REAL, _REALS = pa.string(), pa.float64(), pa.list_(pa.float64())
_ARGUMENT = pa.struct(
    [
        pa.field("dtype", _TEXT, nullable=False),
        pa.field("shape", pa.list_(pa.int64()), nullable=False),
    ]
)

WORKLOADS = pa.schema(
    [
        _field("workload_id", _TEXT, "content hash of the computation"),
        _field("name", _TEXT, "what it computes, e.g. fused_conv2d_add_relu"),
        _field("arguments", pa.list_(_ARGUMENT), "dtype and shape of each argument, results last"),
        _optional("flops", _REAL, "floating-point operations of one call"),
        _optional(
            "mod_json",
            _TEXT,
            "the unscheduled module as TVM's JSON graph; null where a foreign log has none",
        ),
        _optional("mod_script", _TEXT, "the same as TVMScript, for people and other versions"),
    ]
)

SKETCHES = pa.schema(
    [
        _field("sketch_id", _TEXT, "content hash of the instructions"),
        _field("language", _TEXT, "one of costlib.schema.Language"),
        _field("instructions", _TEXT, "a schedule's instructions, JSON, decisions erased"),
    ]
)

NETWORKS = pa.schema(
    [
        _field("network", _TEXT, "the network or operator that was taken apart"),
        _field("workload_id", _TEXT, "a workload it calls"),
        _field("weight", pa.int64(), "how many times it calls it"),
    ]
)

MEASUREMENTS = pa.schema(
    [
        _field("program_id", _TEXT, "content hash of workload, sketch and decisions"),
        _field("workload_id", _TEXT, "the workload it computes"),
        _field("sketch_id", _TEXT, "the sketch it fills in"),
        _field("decisions", _TEXT, "the sampled decisions of the trace, JSON"),
        _field("status", _TEXT, "one of costlib.schema.Status"),
        _optional("latency_s", _REAL, "canary-corrected; null unless ok"),
        _field("run_secs", _REALS, "seconds of each repeat's fastest call"),
        _field("canary_compute", _REALS, "compute canary, seconds, beside each repeat"),
        _field("canary_memory", _REALS, "memory canary, seconds, beside each repeat"),
        _field("raced", pa.bool_(), "true if repeats were saved because it could not win"),
        _optional("build_secs", _REAL, "seconds of compiling; null if not built"),
        _optional("error", _TEXT, "one line on what failed"),
        _field("origin", _TEXT, "one of costlib.schema.Origin"),
        _optional("parent_id", _TEXT, "the program it is a mutation of"),
        _optional("direction", _TEXT, "the direction of that mutation"),
        _field("seed", pa.int64(), "seed of the session that made it"),
        _field("measured_at", pa.timestamp("ms", tz="UTC"), "when"),
        _field("cache", _TEXT, "one of costlib.schema.CacheState"),
    ]
)

MUTATIONS = pa.schema(
    [
        _field("parent_id", _TEXT, "the program that was changed"),
        _field("direction", _TEXT, "what was changed, see DesignSpace.directions"),
        _field("program_id", _TEXT, "the child: content hash as in the measurements"),
        _field("workload_id", _TEXT, "the workload that both compute"),
        _field("sketch_id", _TEXT, "the sketch of both"),
        _field("decisions", _TEXT, "the child's decisions, JSON"),
        _field("parent_score", _REAL, "the cost model's score of the parent"),
        _optional(
            "child_score",
            _REAL,
            "its score of the child; null if the child does not pass the postprocessors",
        ),
        _field("model", _TEXT, "the bundle that scored, and the hash of its files"),
    ]
)

TABLES = {
    "workloads": WORKLOADS,
    "sketches": SKETCHES,
    "networks": NETWORKS,
    "measurements": MEASUREMENTS,
    "mutations": MUTATIONS,
}

ADDED = {"cache": str(CacheState.WARM)}
"""What a column holds in a part that was written before there was such a column."""

PARTITIONED = ("measurements", "mutations")
"""Tables with a folder ``hardware=<hardware_id>`` for each hardware."""
