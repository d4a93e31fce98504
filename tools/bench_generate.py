"""Written programs against searched ones: what a bundle's generator is worth.

    python tools/bench_generate.py run --bundle BUNDLE    # the cases, tools/results/generate/
    python tools/bench_generate.py summary                # tools/results/generate.json

For the two heaviest tasks of each held-out network, by the same runner, sides in turns
(:mod:`search_arms`):

- ``generate``: the best 32 by the bundle's models of 1,024 programs that its generator wrote and
  1,024 random ones, as ``costlib generate -n 32`` picks them;
- ``written``, ``sampled``: the best of the written ones alone, and of the random ones alone;
- ``search``, ``search without``: costlib's search with 32 trials, with the generator and without
  (as ``costlib tune`` does);
- ``stock``: MetaSchedule's search, 64 trials. How much it gains after them is told by its longer
  curves of ``bench_search.py``, which may have been measured on a faster or slower day.

What is there is not measured again. The speed of writing is measured against stock's sampling,
128 programs each, both up to programs that pass the postprocessors. ``bench_search.py long`` has
races of these programs with 1,000 trials of stock, ``bench_search.py networks`` races of 16 such
programs of each task of whole networks. Needs ``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from bench_search import CASES, NETWORK_GENERATED, NETWORKS, heaviest, raced
from search_arms import Arm, ours, stock
from search_summary import Floats, curve
from written_arms import PICKED, generated, sampled, written

from costlib.generator.generate import Writer
from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.space.design_space import DesignSpace
from costlib.space.vectors import sketch_vectors
from costlib.workloads.task import Task

RESULTS = Path(__file__).parent / "results"
FOLDER = RESULTS / "generate"
TIMED = 128
STOCK_TRIALS = 64
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
    hardware, bundle = Hardware.local(), load_pretrained(arguments.bundle)
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
    searches = SearchConfig(generator=True), SearchConfig(generator=False)
    speed = _speed(task, bundle, measurer.hardware, seed)
    arms = [
        Arm("generate", generated([task], seed, measurer, bundle)),
        Arm("written", written([task], seed, measurer, bundle)),
        Arm("sampled", sampled([task], seed, measurer, bundle)),
        Arm("search", ours([task], PICKED, seed, measurer, bundle, searches[0])),
        Arm("search without", ours([task], PICKED, seed, measurer, bundle, searches[1])),
        Arm("stock", stock([task], STOCK_TRIALS, STOCK_TRIALS, seed, measurer)),
    ]
    result = {"bundle": bundle.manifest.created, "hardware": measurer.hardware.hardware_id}
    return result | raced(arms, [task], measurer) | speed


def _speed(
    task: Task, bundle: Bundle, hardware: Hardware, seed: int
) -> dict[str, dict[str, float]]:
    """Return programs per second, and how many of the written ones are valid."""
    space = DesignSpace(task, num_threads=hardware.num_cores)
    writer = Writer(bundle.require_generator(), task, hardware, sketch_vectors(space, seed))
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


def _summary() -> dict[str, Any]:
    """Throughput relative to stock's, at its ends of 64, 200 and 1,000 trials."""
    rows = [_row(file) for file in sorted(FOLDER.glob("*.json"))]
    races = [json.loads(file.read_text()) for file in sorted(CASES.glob("long-*.json"))]
    long = [_long_row(race) for race in races if "written" in race["arms"]]
    networks = [_network_row(file) for file in sorted(CASES.glob("network-*.json"))]
    return {
        "relative_to": "stock's throughput after so many trials: 64 of the same race; 200, that "
        "times what its recorded curves gain beyond; 1,000 of a race of their own (long, where "
        "'search' has 200 trials); 64 a task (networks); then by programs measured of a task",
        "cases": rows,
        "long": long,
        "networks": [row for row in networks if "generate" in row],
        "pooled": {
            arm: {
                **{trials: _pooled(rows, arm, trials) for trials in ("64", "200")},
                "1000": _pooled(long, arm, "1000"),
            }
            for arm in ("generate", "written", "sampled", "search", "search without")
        },
        "generator_in_search": _with_and_without(),
        "valid": round(
            sum(row["programs"]["passed"] for row in rows)
            / max(sum(row["programs"]["written"] for row in rows), 1),
            4,
        ),
    }


def _row(file: Path) -> dict[str, Any]:
    """Return the figures of a case."""
    case = json.loads(file.read_text())
    name, _, seed = file.stem.rpartition("-seed")
    goals = {"64": _best(case["arms"]["stock"])[-1]}
    recorded_file = CASES / f"heavy-{name}-seed{seed}.json"
    if recorded_file.exists():
        recorded_arm = json.loads(recorded_file.read_text())["arms"]["stock"]
        # Not every race here has a second look at its leaders.
        longer = _best({"trials": recorded_arm["trials"]})
        goals["200"] = goals["64"] * longer[-1] / longer[STOCK_TRIALS - 1]
    return {
        "task": name,
        "seed": int(seed),
        "programs": case["programs"],
        "programs_per_s": {k: round(v, 1) for k, v in case["programs_per_s"].items()},
        **{
            arm: {trials: _shares(goal, measured) for trials, goal in goals.items()}
            for arm, measured in case["arms"].items()
        },
    }


def _long_row(race: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of a race in which stock had 1,000 trials."""
    goal = _best(race["arms"]["stock"])[-1]
    picked = ("generate", "written", "sampled")
    arms = {name: name for name in picked} | {"search": "costlib"}
    return {
        "task": race["tasks"][0]["name"],
        "hardware": race["hardware"],
        **{
            name: {"1000": _shares(goal, race["arms"][arm])}
            for name, arm in arms.items()
            if arm in race["arms"]
        },
    }


def _network_row(file: Path) -> dict[str, Any]:
    """Return what generated programs come to on a whole network, if they were raced there."""
    race = json.loads(file.read_text())
    name, _, seed = file.stem.removeprefix("network-").rpartition("-seed")
    row: dict[str, Any] = {"network": name, "seed": int(seed), "hardware": race["hardware"]}
    if "generate" in race["arms"]:
        weights = np.array([task["weight"] for task in race["tasks"]], "float64")
        goal = curve(race["arms"]["stock"], weights)[-1]
        arm = race["arms"]["generate"]
        row["generate"] = {
            str(count): round(float(goal / curve(_first(arm, count), weights)[-1]), 4)
            for count in COUNTS
            if count <= NETWORK_GENERATED
        }
    return row


def _with_and_without() -> dict[str, dict[str, float]]:
    """Throughput of the search with the generator relative to the search without, by programs."""
    arms = [json.loads(file.read_text())["arms"] for file in sorted(FOLDER.glob("*.json"))]
    gains = np.array(
        [np.log(_best(one["search without"]) / _best(one["search"]))[:PICKED] for one in arms]
    )
    return {
        str(count): {
            "throughput": round(float(np.exp(of.mean())), 4),
            "standard_error": round(float(of.std(ddof=1) / np.sqrt(len(of))), 4),
            "ahead": int((of > 0).sum()),
        }
        for count in (1, 2, 4, 8, 16, 32)
        for of in [gains[:, count - 1]]
    }


def _first(arm: dict[str, Any], count: int) -> dict[str, Any]:
    """Return an arm that ended with so many programs of each task."""
    seen = Counter[int]()
    kept: dict[int, int] = {}
    for number, (task, _, _) in enumerate(arm["trials"]):
        seen[task] += 1
        if seen[task] <= count:
            kept[number] = len(kept)
    trials = [arm["trials"][number] for number in kept]
    again = [[kept[number], latency_s] for number, latency_s in arm["again"] if number in kept]
    return {"trials": trials, "again": again}


def _best(arm: dict[str, Any]) -> Floats:
    return curve(arm, np.ones(1))


def _shares(goal: float, arm: dict[str, Any]) -> dict[str, float]:
    """Return the throughput relative to a goal, after so many programs."""
    best = _best(arm)
    return {str(k): round(float(goal / best[k - 1]), 4) for k in COUNTS if k <= len(best)}


def _pooled(rows: Sequence[dict[str, Any]], arm: str, trials: str) -> dict[str, float]:
    """Return geometric means over the cases."""
    pooled = {}
    for count in map(str, COUNTS):
        found = [row.get(arm, {}).get(trials, {}) for row in rows]
        shares = [one[count] for one in found if count in one]
        if shares:
            pooled[count] = round(float(np.exp(np.mean(np.log(np.maximum(shares, 1e-6))))), 4)
    return pooled


if __name__ == "__main__":
    main()
