"""Tuned networks in several precisions beside engines in the same, and all of them together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from costlib.tuning.result import TuneResult
from tools.evidence.means import geometric_mean

Precision = Literal["float32", "bfloat16", "int8", "int8-weights", "int4-weights"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

IN_WORDS: dict[Precision, str] = {
    **{precision: precision for precision in PRECISIONS},
    "int8-weights": "8-bit weights",
    "int4-weights": "4-bit weights",
}

OURS = "costlib"


class InPrecision(BaseModel):
    """A network in a precision, tuned for so many threads, and what it takes elsewhere.

    Attributes
    ----------
    name, precision, threads
        The network; all engines compute in that precision and have so many threads, but PyTorch
        where it is named without one: it computes in float32.
    hardware
        Id of what it was measured on.
    trials
        Programs measured.
    seconds
        Of a call, by ``"costlib"`` and the titles of engines that run it.
    agreement
        Largest difference from what the tuned network is held against, by the same.
    rounding_error
        Largest difference from the original that rounding makes, where it does.
    largest_output
        The largest element of the output.
    doubtful
        Those whose turns did not agree.
    problems
        Why there is no latency, by engine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    precision: Precision
    threads: int
    hardware: str
    trials: int
    seconds: dict[str, float]
    agreement: dict[str, float] = {}
    rounding_error: float | None = None
    largest_output: float
    doubtful: tuple[str, ...] = ()
    problems: dict[str, str] = {}

    @property
    def case(self) -> tuple[str, str, int, str]:
        """Which network, precision and threads it is, and on which machine."""
        return self.name, self.precision, self.threads, self.hardware

    @classmethod
    def of_run(
        cls, name: str, precision: Precision, threads: int, result: TuneResult
    ) -> InPrecision:
        """Return what a run of one network came to."""
        (network,) = result.networks
        seconds = {OURS: network.latency_after_s}
        if network.pytorch_latency_s is not None:
            seconds["PyTorch"] = network.pytorch_latency_s
        agreement = {OURS: network.max_abs_error}
        for engine in network.engines:
            if engine.latency_s is not None:
                seconds[engine.title] = engine.latency_s
            if engine.max_abs_error is not None:
                agreement[engine.title] = engine.max_abs_error
        titles = {"tuned": OURS}
        return cls(
            name=name,
            precision=precision,
            threads=threads,
            hardware=result.hardware_id,
            trials=result.trials,
            seconds=seconds,
            agreement=agreement,
            rounding_error=network.rounding_error,
            largest_output=network.max_abs_output,
            doubtful=tuple(titles.get(what, what) for what in network.doubtful),
            problems={one.title: one.problem for one in network.engines if one.problem},
        )


def summarise_precisions(rows: Iterable[InPrecision]) -> dict[str, Any]:
    """Return the result file: each case, and how many times as fast ours are as others'.

    ``"by_engine"``: geometric means over the cases of a precision. ``"by_float32"``: the same over
    our own networks in float32.
    """
    rows = list(rows)
    ours = {row.case: row.seconds[OURS] for row in rows}
    by_engine: dict[str, dict[str, float]] = {}
    by_float32: dict[str, float] = {}
    for precision in dict.fromkeys(row.precision for row in rows):
        found: dict[str, list[float]] = {}
        gains = []
        for row in (row for row in rows if row.precision == precision):
            for title, secs in row.seconds.items():
                found.setdefault(title, []).append(secs / row.seconds[OURS])
            wide = ours.get((row.name, "float32", row.threads, row.hardware))
            if wide is not None and precision != "float32":
                gains.append(wide / row.seconds[OURS])
        found.pop(OURS, None)
        by_engine[precision] = {title: geometric_mean(ratios) for title, ratios in found.items()}
        if gains:
            by_float32[precision] = geometric_mean(gains)
    return {
        "by_engine": by_engine,
        "by_float32": by_float32,
        "cases": [row.model_dump(mode="json") for row in rows],
    }
