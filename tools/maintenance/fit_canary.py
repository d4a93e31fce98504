"""Fit the two constants of the canaries' correction on this machine.

    python -m tools.maintenance.fit_canary --minutes 30      # writes tools/results/canary.json

A few programs of ten operators are built once and run again and again, in turns, while the
machine changes its speed as it does. Between the rounds the canaries are timed alone.

``MEMORY_SHARE``: how a program's time follows the memory canary once the compute canary is taken
out; the slope between the logarithms of both, less their medians over the runs of the program.

``DEAD_BAND``: what the canaries claim in a calm state. In bursts of the fast state, the slow-down
that the better of two neighbouring samples shows against the burst's reference; nine in ten
show less than this.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import theilslopes

from costlib.hardware import Hardware
from costlib.measure.config import CanaryJob, MeasureConfig, Timing
from costlib.measure.correction import DEAD_BAND, MEMORY_SHARE
from costlib.measure.measurer import Measurer
from costlib.tvm_compat.api import entry_argument_shapes
from tools.benchmarks.operators import OPERATORS, heaviest_task, random_modules
from tools.evidence.files import write_result

PROGRAMS = 3
BURST_SAMPLES = 50
CALM_SHARE = 0.1
"""A burst is calm if its compute canary is within this share of the fastest burst's."""

REFERENCE_QUANTILE = 0.2
NOISE_QUANTILE = 0.9
CONFIG = MeasureConfig(repeats=1, repeat_secs=0.02, max_retakes=0)

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Program:
    """A built program and the arguments it is called with."""

    path: Path
    arguments: Any


def main() -> None:
    """Measure, fit, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    hardware = Hardware.local()
    with Measurer(hardware, CONFIG) as measurer:
        programs = _build(measurer, arguments.seed)
        runs, bursts = _observe(measurer, programs, 60 * arguments.minutes)
    share = _memory_share(runs)
    calm = _calm_noise(bursts, share["fitted"])
    result = {
        "hardware_id": hardware.hardware_id,
        "minutes": arguments.minutes,
        "programs": len(programs),
        "runs": sum(len(timings) for timings in runs),
        "compute_canary_p95_over_p5": _drift(runs),
        "memory_share": share | {"in_use": MEMORY_SHARE},
        "dead_band": calm | {"in_use": DEAD_BAND},
        "spread_of_log_latency": {
            "raw": _spread(runs, None),
            "corrected_in_use": _spread(runs, MEMORY_SHARE),
            "corrected_fitted": _spread(runs, share["fitted"]),
        },
    }
    write_result("canary", result)
    print(json.dumps(result, indent=2))


def _build(measurer: Measurer, seed: int) -> list[Program]:
    modules = [
        module
        for operator in OPERATORS
        for module in random_modules(heaviest_task(operator, measurer.hardware), PROGRAMS, seed)
    ]
    paths = [measurer.server.folder / f"{number}.so" for number in range(len(modules))]
    jobs = [measurer.build_job(module, path) for module, path in zip(modules, paths, strict=True)]
    outcomes = measurer.server.work(jobs)
    return [
        Program(path, entry_argument_shapes(module))
        for module, path, outcome in zip(modules, paths, outcomes, strict=True)
        if outcome.error is None
    ]


def _observe(
    measurer: Measurer, programs: list[Program], secs: float
) -> tuple[list[list[Timing]], list[Timing]]:
    """Return each program's runs, and bursts of the canaries alone."""
    runs: list[list[Timing]] = [[] for _ in programs]
    bursts: list[Timing] = []
    end = time.monotonic() + secs
    while time.monotonic() < end or len(bursts) < 2:
        for program, timings in zip(programs, runs, strict=True):
            outcome, _ = measurer.run_library(program.path, program.arguments)
            if outcome.timing is not None:
                timings.append(outcome.timing)
        alone = measurer.server.work([CanaryJob(samples=BURST_SAMPLES)])[0].timing
        if alone is not None:
            bursts.append(alone)
    return runs, bursts


def _logs(timings: list[Timing]) -> Array:
    """Return `runs x 3`: log of time, compute and memory canary, less their medians."""
    seconds = [(min(t.run_secs), min(t.canary_compute), min(t.canary_memory)) for t in timings]
    logs = np.log(np.asarray(seconds, "float64"))
    return np.asarray(logs - np.median(logs, axis=0))


def _memory_share(runs: list[list[Timing]]) -> dict[str, float]:
    logs = np.concatenate([_logs(timings) for timings in runs if timings])
    slope, _, low, high = theilslopes(logs[:, 0] - logs[:, 1], logs[:, 2], alpha=0.95)
    both, *_ = np.linalg.lstsq(logs[:, 1:], logs[:, 0], rcond=None)
    return {
        "fitted": round(float(slope), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
        "least_squares_compute_exponent": round(float(both[0]), 4),
        "least_squares_memory_exponent": round(float(both[1]), 4),
    }


def _calm_noise(bursts: list[Timing], share: float) -> dict[str, float]:
    medians = [float(np.median(burst.canary_compute)) for burst in bursts]
    calm = [
        burst
        for burst, median in zip(bursts, medians, strict=True)
        if median <= min(medians) * (1 + CALM_SHARE)
    ]
    noise = np.concatenate([_claimed_slow_down(burst, share) for burst in calm])
    return {
        "fitted": round(float(np.quantile(noise, NOISE_QUANTILE)), 4),
        "calm_bursts": len(calm),
        "bursts": len(bursts),
    }


def _claimed_slow_down(burst: Timing, share: float) -> Array:
    claimed = np.zeros(len(burst.canary_compute) - 1)
    for samples, exponent in ((burst.canary_compute, 1.0), (burst.canary_memory, share)):
        best = np.minimum(samples[:-1], samples[1:])
        claimed += exponent * np.log(best / np.quantile(samples, REFERENCE_QUANTILE))
    return np.asarray(np.expm1(claimed))


def _spread(runs: list[list[Timing]], share: float | None) -> float:
    """Return the median over programs of the deviation of log latency, corrected or not."""
    deviations = []
    for timings in runs:
        if len(timings) > 1:
            logs = _logs(timings)
            left = logs[:, 0] if share is None else logs[:, 0] - logs[:, 1] - share * logs[:, 2]
            deviations.append(float(np.std(left)))
    return round(float(np.median(deviations)), 4)


def _drift(runs: list[list[Timing]]) -> float:
    seconds = [min(t.canary_compute) for timings in runs for t in timings]
    low, high = np.quantile(seconds, [0.05, 0.95])
    return round(float(high / low), 3)


if __name__ == "__main__":
    main()
