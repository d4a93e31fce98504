"""Measure the measuring: throughput against stock MetaSchedule, and agreement of two passes.

    python -m tools.benchmarks.measure       # writes tools/results/measure.json

Throughput: batches of 64 random programs, MetaSchedule's default, of four operators, built and run
by costlib and by stock ``LocalBuilder`` + ``LocalRunner`` in turns. Both time a good program three
times 20 ms. Stock gets costlib's fast start as its workers' initializer.

Agreement: two passes over the same 20 random programs of each of ten operators, in the same order;
how well do they agree, raw and corrected by the canaries?
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from costlib.arrays import Floats
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurement import Candidate, Measurement
from costlib.measure.measurer import Measurer
from costlib.tvm_compat import ms
from costlib.tvm_compat.fast_start import start
from costlib.workloads import Task
from tools.benchmarks.operators import OPERATORS, heaviest_task, random_candidates
from tools.evidence.files import write_result

BATCH = 64
BATCH_OPERATORS = tuple(OPERATORS[i] for i in (0, 3, 5, 8))
PASS_PROGRAMS = 20
CONFIG = MeasureConfig(repeats=3, repeat_secs=0.02)
STOCK_CONFIG = ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20)


def main() -> None:
    """Run both parts and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=BATCH, help="programs")
    parser.add_argument("--pass-programs", type=int, default=PASS_PROGRAMS, help="of an operator")
    arguments = parser.parse_args()

    hardware = Hardware.local()
    with Measurer(hardware, CONFIG) as measurer:
        throughput = _throughput(measurer, hardware, arguments.seed, arguments.batch)
        tasks = [heaviest_task(operator, hardware) for operator in OPERATORS]
        count = arguments.pass_programs
        drawn = [random_candidates(task, count, arguments.seed) for task in tasks]
        first, second = (
            [
                m
                for task, batch in zip(tasks, drawn, strict=True)
                for m in measurer.measure(task, batch)
            ]
            for _ in range(2)
        )
    result = {
        "hardware_id": hardware.hardware_id,
        "seed": arguments.seed,
        "config": CONFIG.model_dump(),
        "throughput": throughput,
        "agreement": _agreement(first, second),
    }
    write_result("measure", result)
    print(json.dumps(result, indent=2))


def _throughput(measurer: Measurer, hardware: Hardware, seed: int, batch: int) -> dict[str, Any]:
    builder = ms.builder.LocalBuilder(max_workers=hardware.num_cores, initializer=start)
    runner = ms.runner.LocalRunner(evaluator_config=STOCK_CONFIG, initializer=start)
    rows = []
    for number, operator in enumerate(BATCH_OPERATORS):
        task = heaviest_task(operator, hardware)
        drawn = random_candidates(task, batch, seed)
        sides = {
            "costlib": lambda task=task, drawn=drawn: _measure_ours(measurer, task, drawn),
            "stock": lambda task=task, drawn=drawn: _measure_stock(builder, runner, task, drawn),
        }
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        row: dict[str, Any] = {"operator": operator, "programs": len(drawn), "order": order}
        for side in order:
            started = time.perf_counter()
            outcome = sides[side]()
            row[f"{side}_secs"] = round(time.perf_counter() - started, 3)
            row |= outcome
        row["ratio"] = round(row["stock_secs"] / row["costlib_secs"], 3)
        print(row, flush=True)
        rows.append(row)
    programs = sum(row["programs"] for row in rows)
    totals = {side: sum(row[f"{side}_secs"] for row in rows) for side in ("costlib", "stock")}
    ratios = [row["ratio"] for row in rows]
    return {
        "programs": programs,
        "costlib_per_minute": round(60 * programs / totals["costlib"], 1),
        "stock_per_minute": round(60 * programs / totals["stock"], 1),
        "ratio": round(totals["stock"] / totals["costlib"], 2),
        "compiling_share": round(
            sum(row["costlib_compiling_secs"] for row in rows) / totals["costlib"], 3
        ),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "operators": rows,
    }


def _measure_ours(measurer: Measurer, task: Task, drawn: list[Candidate]) -> dict[str, Any]:
    """Build and run a batch our way; note how long compiling alone kept the cores busy."""
    measurements = measurer.measure(task, drawn)
    compiling = sum(m.build_secs or 0.0 for m in measurements)
    return {
        "costlib_ok": sum(m.latency_s is not None for m in measurements),
        "costlib_compiling_secs": round(compiling / measurer.hardware.num_cores, 3),
    }


def _measure_stock(builder: Any, runner: Any, task: Task, drawn: list[Candidate]) -> dict[str, Any]:
    """Build and run a batch the stock way."""
    schedules = [candidate.schedule for candidate in drawn if candidate.schedule is not None]
    target = task.tvm_target()
    builds = builder.build([ms.builder.BuilderInput(s.mod, target) for s in schedules])
    inputs = [
        ms.runner.RunnerInput(
            build.artifact_path, "cpu", ms.arg_info.ArgInfo.from_entry_func(schedule.mod)
        )
        for build, schedule in zip(builds, schedules, strict=True)
        if build.error_msg is None
    ]
    results = [future.result() for future in runner.run(inputs)]
    return {"stock_ok": sum(result.run_secs is not None for result in results)}


def _agreement(first: list[Measurement], second: list[Measurement]) -> dict[str, Any]:
    pairs = [
        (a, b)
        for a, b in zip(first, second, strict=True)
        if a.latency_s is not None and b.latency_s is not None
    ]

    def compare(values: Floats) -> dict[str, float]:
        deviation = np.abs(np.log(values[:, 0] / values[:, 1]))
        return {
            "spearman": round(float(spearmanr(values[:, 0], values[:, 1])[0]), 4),
            "median_deviation": round(float(np.median(deviation)), 4),
            "p90_deviation": round(float(np.quantile(deviation, 0.9)), 4),
        }

    return {
        "programs": len(pairs),
        "raw_median": compare(np.array([[np.median(m.run_secs) for m in pair] for pair in pairs])),
        "raw_minimum": compare(np.array([[min(m.run_secs) for m in pair] for pair in pairs])),
        "corrected": compare(np.array([[m.latency_s for m in pair] for pair in pairs])),
    }


if __name__ == "__main__":
    main()
