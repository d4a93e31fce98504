"""Written programs against searched ones: what a bundle's generator is worth.

    python tools/bench_generate.py run --bundle BUNDLE    # the cases, tools/results/generate/
    python tools/bench_generate.py summary                # tools/results/generate.json

For the two heaviest tasks of each held-out network, by the same runner, sides in turns
(:mod:`search_arms`):

- ``written``: the best 32 of 1,024 written programs by the bundle's models, as
  ``costlib generate -n 32`` picks them;
- ``sampled``: the same of 1,024 random ones;
- ``search``, ``search without``: costlib's search with 32 trials, with the generator and without;
- ``stock``: MetaSchedule's search, 64 trials. How much it gains after them is told by its longer
  curves of ``bench_search.py``, which may have been measured on a faster or slower day.

What is there is not measured again. The speed of writing is measured against stock's sampling,
128 programs each, both up to programs that pass the postprocessors. Needs
``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from bench_search import CASES, MCPU, NETWORKS, heaviest, raced
from search_arms import Arm, Turns, ours, stock
from search_summary import curve

from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.hub.scorer import BundleScorer
from costlib.measure.measurer import Candidate, Measurer
from costlib.search.config import SearchConfig
from costlib.search.generate import Writer, pick
from costlib.space.design_space import DesignSpace
from costlib.space.vectors import sketch_vectors
from costlib.workloads.task import Task

RESULTS = Path(__file__).parent / "results"
FOLDER = RESULTS / "generate"
DRAWN = 1024
MEASURED = 32
TIMED = 128
STOCK_TRIALS = 64
BATCH = 4
COUNTS = (1, 4, 16, 32)
SEEDS = (0, 1, 2)


def main() -> None:
    """Measure the cases that are missing, or summarise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=["run", "summary"])
    parser.add_argument("--bundle", default="cpu-gbdt")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    arguments = parser.parse_args()
    if arguments.part == "summary":
        (RESULTS / "generate.json").write_text(json.dumps(_summary(), indent=1) + "\n")
        return
    FOLDER.mkdir(exist_ok=True)
    end = time.monotonic() + 60 * arguments.minutes
    hardware, bundle = Hardware.local(mcpu=MCPU), load_pretrained(arguments.bundle)
    with Measurer(hardware, reference=bundle.canary(hardware.hardware_id)) as measurer:
        for seed in arguments.seeds:
            for network in NETWORKS:
                for rank, task in enumerate(heaviest(network, hardware, 2)):
                    file = FOLDER / f"{network}-{rank}-seed{seed}.json"
                    if file.exists() or time.monotonic() > end:
                        continue
                    file.write_text(json.dumps(_case(task, bundle, measurer, seed)) + "\n")
                    print(file.stem, flush=True)


def _case(task: Task, bundle: Bundle, measurer: Measurer, seed: int) -> dict[str, Any]:
    hardware = measurer.hardware
    space = DesignSpace(task, num_threads=hardware.num_cores)
    vectors = sketch_vectors(space, seed)
    writer = Writer(bundle.require_generator(), task, hardware, vectors)
    scorer = BundleScorer(bundle, hardware)

    def written() -> list[Candidate]:
        found = writer.write_all(DRAWN, np.random.default_rng(seed))
        return pick(found.programs, space, scorer, MEASURED).candidates

    def sampled() -> list[Candidate]:
        rng = np.random.default_rng(seed)
        rows = {name: one.random(-(-DRAWN // len(vectors)), rng) for name, one in vectors.items()}
        drawn = [program for name, one in vectors.items() for program in one.decode(rows[name])]
        distinct = list({program.program_id: program for program in drawn}.values())
        return pick(distinct, space, scorer, MEASURED).candidates

    without = SearchConfig(generator=False)
    speed = _speed(space, writer, seed)
    arms = [
        Arm("written", _listed(task, written, measurer)),
        Arm("sampled", _listed(task, sampled, measurer)),
        Arm("search", ours([task], MEASURED, seed, measurer, bundle, SearchConfig())),
        Arm("search without", ours([task], MEASURED, seed, measurer, bundle, without)),
        Arm("stock", stock([task], STOCK_TRIALS, STOCK_TRIALS, seed, measurer)),
    ]
    result = {"bundle": bundle.manifest.created, "hardware": hardware.hardware_id}
    return result | raced(arms, [task], measurer) | speed


def _speed(space: DesignSpace, writer: Writer, seed: int) -> dict[str, dict[str, float]]:
    """Return programs per second, and how many of the written ones are valid."""
    started = time.perf_counter()
    programs = writer.write_all(TIMED, np.random.default_rng(seed)).programs
    passed = sum(space.lower(program) is not None for program in programs)
    wrote_s = time.perf_counter() - started
    started = time.perf_counter()
    valid = (schedule for _, schedule in space.sample(seed) if schedule is not None)
    sampled = sum(1 for _ in islice(valid, TIMED))
    sampled_s = time.perf_counter() - started
    return {
        "programs_per_s": {"written": passed / wrote_s, "sampled": sampled / sampled_s},
        "programs": {"written": len(programs), "passed": passed},
    }


def _listed(
    task: Task, make: Callable[[], list[Candidate]], measurer: Measurer
) -> Callable[[Arm, Turns], None]:
    """Measure a list in its order."""

    def run(arm: Arm, turns: Turns) -> None:
        candidates = make()
        best_s: float | None = None
        for start in range(0, len(candidates), BATCH):
            began = time.perf_counter()
            batch = measurer.measure(task, candidates[start : start + BATCH], best_s)
            arm.measure_s += time.perf_counter() - began
            known = [m.latency_s for m in batch if m.latency_s is not None and not m.raced]
            best_s = min([*known, *([] if best_s is None else [best_s])], default=None)
            schedules = [one.schedule for one in candidates[start : start + BATCH]]
            arm.note(0, [m.latency_s for m in batch], schedules)
            arm.end(turns)
            arm.begin(turns)

    return run


def _summary() -> dict[str, Any]:
    """Throughput relative to stock's, at its ends of 64, 200 and 1,000 trials."""
    rows = []
    for file in sorted(FOLDER.glob("*.json")):
        case = json.loads(file.read_text())
        name, _, seed = file.stem.rpartition("-seed")
        goals = {"64": curve(case["arms"]["stock"], np.ones(1))[-1]}
        network, _, rank = name.rpartition("-")
        known = {"200": f"heavy-{name}-seed{seed}"}
        if rank == "0":
            known["1000"] = f"long-{network}-seed{seed}"
        for trials, recorded in known.items():
            recorded_file = CASES / f"{recorded}.json"
            if recorded_file.exists():
                recorded_arm = json.loads(recorded_file.read_text())["arms"]["stock"]
                # Not every race here has a second look at its leaders.
                as_measured = {"trials": recorded_arm["trials"]}
                longer = curve(as_measured, np.ones(1))
                goals[trials] = goals["64"] * longer[-1] / longer[STOCK_TRIALS - 1]
        row: dict[str, Any] = {"task": name, "seed": int(seed), "programs": case["programs"]}
        row["programs_per_s"] = {k: round(v, 1) for k, v in case["programs_per_s"].items()}
        for arm_name, arm in case["arms"].items():
            best = curve(arm, np.ones(1))
            row[arm_name] = {
                trials: {
                    str(k): round(float(goal / best[k - 1]), 4) for k in COUNTS if k <= len(best)
                }
                for trials, goal in goals.items()
            }
        rows.append(row)
    return {
        "relative_to": "stock's throughput after so many trials (64 of the same race, times what "
        "its recorded curves gain beyond); then by programs measured",
        "cases": rows,
        "pooled": {
            arm: {trials: _pooled(rows, arm, trials) for trials in ("64", "200", "1000")}
            for arm in ("written", "sampled", "search", "search without")
        },
        "valid": round(
            sum(row["programs"]["passed"] for row in rows)
            / max(sum(row["programs"]["written"] for row in rows), 1),
            4,
        ),
    }


def _pooled(rows: Sequence[dict[str, Any]], arm: str, trials: str) -> dict[str, float]:
    """Return geometric means over the cases."""
    pooled = {}
    for count in map(str, COUNTS):
        shares = [row[arm][trials][count] for row in rows if count in row[arm].get(trials, {})]
        if shares:
            pooled[count] = round(float(np.exp(np.mean(np.log(np.maximum(shares, 1e-6))))), 4)
    return pooled


if __name__ == "__main__":
    main()
