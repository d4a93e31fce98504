"""costlib's search against stock MetaSchedule's, on the held-out networks.

    python tools/bench_search.py heavy            # the two heaviest tasks of each network
    python tools/bench_search.py networks         # whole networks
    python tools/bench_search.py ablation         # each part of the search alone, and without it
    python tools/bench_search.py cold             # the same without a bundle
    python tools/bench_search.py diffusion        # the same of diffusion, on whole networks
    python tools/bench_search.py long             # the heaviest tasks, stock with 1,000 trials
    python tools/bench_search.py summary          # tools/results/search.json and its pictures

Each case (a task or a network, and a seed) is a file in ``tools/results/search/`` with every trial
of all sides; what is there is not measured again, so the parts can be stopped and go on.
``--minutes`` begins no case after that time. Sides take turns on the machine
(:mod:`search_arms`). Stock's cost model needs ``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from search_arms import Arm, Turns, ours, race, stock
from search_picture import draw
from search_summary import summarise
from written_arms import generated, sampled, written

from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.space.design_space import DesignSpace
from costlib.workloads import extract_tasks
from costlib.workloads.task import Task

ROOT = Path(__file__).parent / "results"
CASES = ROOT / "search"

NETWORKS = ("bert_tiny", "mobilenet_v2", "bert_base", "resnet_50", "resnext_50")
SEEDS = {"bert_tiny": (0, 1, 2), "mobilenet_v2": (0, 1, 2)}
HEAVY_TRIALS = 200
HEAVY_SEEDS = (0, 1, 2)
LONG_TRIALS = 1000
NETWORK_TRIALS = 64
NETWORK_GENERATED = 16
ABLATION_TRIALS = 48
ABLATION_SEEDS = (0, 1)
DIFFUSION_TRIALS = 16
DIFFUSION_NETWORKS = ("bert_tiny", "mobilenet_v2")
PLAIN = SearchConfig(
    growth=0,
    ahead=False,
    early_survivors=2,
    crossover=0,
    diversity=0,
    draft=False,
    directions=False,
    sketch_selection=False,
    diffusion=False,
    bank=False,
    correction=False,
    generator=False,
    looks=1,
    niches=0,
)
FULL = SearchConfig(crossover=0.2, directions=True)
"""The default, and what the ablation has switched off since."""
COLD = SearchConfig(crossover=0.2, diversity=0.5)
"""The full search without a bundle, as it was when its parts were first raced."""
PARTS: dict[str, dict[str, Any]] = {
    "crossover": {"crossover": 0.2},
    "diversity": {"diversity": 0.2},
    "draft": {"draft": True},
    "directions": {"directions": True},
    "sketch selection": {"sketch_selection": True},
    "bank": {"bank": True},
    "correction": {"correction": True},
    "generator": {"generator": True},
    "looks": {"looks": 3},
    "niches": {"niches": 0.5},
    "early survivors": {"early_survivors": 8},
    "growing batches": {"growth": 0.25},
    "proposing ahead": {"ahead": True},
}
OF_A_BUNDLE = ("directions", "bank", "generator")
"""Parts that a search without a bundle does not have."""
DIFFUSION: dict[str, dict[str, Any]] = {"diffusion": {"diffusion": True}}

Version = tuple[Bundle | None, SearchConfig]


class Case(NamedTuple):
    """Something to be measured: a file name and what goes into the file."""

    name: str
    measure: Callable[[Measurer, Bundle], dict[str, Any]]


def main() -> None:
    """Measure the cases of a part that are missing."""
    parts = {
        "heavy": heavy,
        "networks": whole,
        "long": long,
        "ablation": ablation,
        "cold": cold,
        "diffusion": diffusion,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=[*parts, "summary"])
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--bundle", default="cpu-gbdt")
    arguments = parser.parse_args()
    if arguments.part == "summary":
        (ROOT / "search.json").write_text(json.dumps(summarise(CASES), indent=1) + "\n")
        for kind in ("heavy", "network", "long"):
            draw(CASES, kind, ROOT / f"search_{kind}.png")
        return
    CASES.mkdir(exist_ok=True)
    started = time.monotonic()
    hardware = Hardware.local()
    bundle = load_pretrained(arguments.bundle)
    with Measurer(hardware, reference=bundle.canary(hardware.hardware_id)) as measurer:
        for case in parts[arguments.part](hardware, arguments.only, arguments.seeds):
            file = CASES / f"{case.name}.json"
            if file.exists() or time.monotonic() - started > 60 * arguments.minutes:
                continue
            content = {"bundle": bundle.manifest.created, "hardware": hardware.hardware_id}
            content |= case.measure(measurer, bundle)
            file.write_text(json.dumps(content) + "\n")
            print(case.name, f"{time.monotonic() - started:.0f} s", flush=True)


def heaviest(network: str, hardware: Hardware, count: int) -> list[Task]:
    """Return the tunable tasks of a network with the most operations, each of weight 1."""
    return [task.times(1) for task in tunable(network, hardware)[:count]]


def tunable(network: str, hardware: Hardware) -> list[Task]:
    """Return the tasks of a network that there is something to decide about."""
    return [t for t in extract_tasks(network, hardware) if DesignSpace(t).is_tunable]


def heavy(hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None) -> Iterator[Case]:
    """Yield single tasks, a seed after the other."""
    tasks = {network: heaviest(network, hardware, 2) for network in only}
    for seed in seeds or HEAVY_SEEDS:
        for network in only:
            for rank, task in enumerate(tasks[network]):
                name = f"heavy-{network}-{rank}-seed{seed}"
                yield Case(name, _against_stock([task], HEAVY_TRIALS, HEAVY_TRIALS, seed))


def long(hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None) -> Iterator[Case]:
    """Yield the heaviest task of each network, stock with many more trials."""
    picked = {"generate": generated, "written": written, "sampled": sampled}
    for seed in seeds or (0,):
        for network in only:
            (task,) = heaviest(network, hardware, 1)
            sides = _against_stock([task], LONG_TRIALS, HEAVY_TRIALS, seed, **picked)
            yield Case(f"long-{network}-seed{seed}", sides)


def whole(hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None) -> Iterator[Case]:
    """Yield whole networks, with a side that measures generated programs of each task."""
    generate = partial(generated, count=NETWORK_GENERATED)
    for network in only:
        tasks = tunable(network, hardware)
        budget = NETWORK_TRIALS * len(tasks)
        for seed in seeds or SEEDS.get(network, (0,)):
            sides = _against_stock(tasks, budget, budget, seed, generate=generate)
            yield Case(f"network-{network}-seed{seed}", sides)


def ablation(
    hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None
) -> Iterator[Case]:
    """Yield single tasks with every version of costlib's search side by side."""
    for name, task, seed in _ablated(hardware, only, seeds):
        sides = partial(_with_and_without, parts=PARTS)
        yield Case(f"ablation-{name}-seed{seed}", _versions([task], ABLATION_TRIALS, sides, seed))


def cold(hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None) -> Iterator[Case]:
    """Yield the same tasks, without a bundle."""
    for name, task, seed in _ablated(hardware, only, seeds):
        case = f"ablation-{name}-cold-seed{seed}"
        yield Case(case, _versions([task], ABLATION_TRIALS, _cold_versions, seed))


def _ablated(
    hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None
) -> Iterator[tuple[str, Task, int]]:
    tasks = {network: heaviest(network, hardware, 2) for network in only}
    for seed in seeds or ABLATION_SEEDS:
        for network in only:
            for rank, task in enumerate(tasks[network]):
                yield f"{network}-{rank}", task, seed


def diffusion(
    hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None
) -> Iterator[Case]:
    """Yield whole networks with and without diffusion, which goes from task to task."""
    for network in DIFFUSION_NETWORKS:
        if network in only:
            tasks = tunable(network, hardware)
            trials = DIFFUSION_TRIALS * len(tasks)
            for seed in seeds or ABLATION_SEEDS:
                name = f"ablation-{network}-all-seed{seed}"
                sides = partial(_with_and_without, parts=DIFFUSION)
                yield Case(name, _versions(tasks, trials, sides, seed))


def _against_stock(
    tasks: Sequence[Task],
    stock_trials: int,
    our_trials: int,
    seed: int,
    **others: Callable[[Sequence[Task], int, Measurer, Bundle], Callable[[Arm, Turns], None]],
) -> Callable[[Measurer, Bundle], dict[str, Any]]:
    """Race stock, costlib and ``others``, programs that were picked without a search."""

    def measure(measurer: Measurer, bundle: Bundle) -> dict[str, Any]:
        per_task = stock_trials if len(tasks) == 1 else NETWORK_TRIALS
        arms = [
            Arm("stock", stock(tasks, stock_trials, per_task, seed, measurer)),
            Arm("costlib", ours(tasks, our_trials, seed, measurer, bundle, SearchConfig())),
            *(Arm(name, side(tasks, seed, measurer, bundle)) for name, side in others.items()),
        ]
        return raced(arms, tasks, measurer)

    return measure


def _versions(
    tasks: Sequence[Task],
    trials: int,
    versions: Callable[[Bundle], Mapping[str, Version]],
    seed: int,
) -> Callable[[Measurer, Bundle], dict[str, Any]]:
    def measure(measurer: Measurer, bundle: Bundle) -> dict[str, Any]:
        arms = [
            Arm(name, ours(tasks, trials, seed, measurer, known, config))
            for name, (known, config) in versions(bundle).items()
        ]
        return raced(arms, tasks, measurer)

    return measure


def _with_and_without(bundle: Bundle, parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Version]:
    """Return the plain loop with each part, and the full search without it."""
    versions: dict[str, Version] = {"plain": (bundle, PLAIN), "full": (bundle, FULL)}
    versions["cold"] = None, COLD
    for name, change in parts.items():
        versions[f"plain + {name}"] = bundle, PLAIN.model_copy(update=change)
        sign, config = _switched(change)
        versions[f"full {sign} {name}"] = bundle, config
    return versions


def _cold_versions(bundle: Bundle) -> dict[str, Version]:
    """Return the same without a bundle; there the plain loop learns, as it has nothing else."""
    learning = PLAIN.model_copy(update=PARTS["correction"])
    versions: dict[str, Version] = {"full": (bundle, FULL), "cold": (None, COLD)}
    versions["cold-plain"] = None, learning
    for name, change in PARTS.items():
        if name not in OF_A_BUNDLE:
            sign, config = _switched(change, COLD)
            versions[f"cold {sign} {name}"] = None, config
            if name != "correction":
                versions[f"cold-plain + {name}"] = None, learning.model_copy(update=change)
    return versions


def _switched(change: Mapping[str, Any], full: SearchConfig = FULL) -> tuple[str, SearchConfig]:
    """Return the full search without a part, or with it if it is not in there."""
    less = full.model_copy(update={field: getattr(PLAIN, field) for field in change})
    return ("-", less) if less != full else ("+", full.model_copy(update=change))


def raced(arms: Sequence[Arm], tasks: Sequence[Task], measurer: Measurer) -> dict[str, Any]:
    """Run a race and return all its trials."""
    race(arms, measurer)
    return {
        "tasks": [
            {"name": t.name, "workload_id": t.workload_id, "weight": t.weight, "flops": t.flops}
            for t in tasks
        ],
        "arms": {
            arm.name: {
                "trials": [
                    [task, None if s is None else float(f"{s:.5g}"), round(elapsed, 2)]
                    for task, s, elapsed in arm.trials
                ],
                "again": [[trial, float(f"{s:.5g}")] for trial, s in arm.again],
                "active_s": round(arm.active_s, 1),
                "measure_s": round(arm.measure_s, 1),
            }
            for arm in arms
        },
    }


if __name__ == "__main__":
    main()
