"""costlib's search against stock MetaSchedule's, on the held-out networks.

    python -m tools.benchmarks.search heavy       # the two heaviest tasks of each network
    python -m tools.benchmarks.search networks    # whole networks
    python -m tools.benchmarks.search long        # the heaviest tasks, stock with 1,000 trials
    python -m tools.benchmarks.search ablation    # each part of the search alone, and without it
    python -m tools.benchmarks.search cold        # the same without a bundle
    python -m tools.benchmarks.search diffusion   # the same of diffusion, on whole networks

Each case (a task or a network, and a seed) is a race with every trial of all sides, which take
turns on the machine (:mod:`tools.benchmarks.race`). It is kept in ``tools/results/raw/search``, and
``python -m tools.evidence.pack search`` puts it with those that are committed. What is there is not
raced again, so the parts can be stopped and go on. ``--minutes`` begins no case after that time.
Stock's cost model needs ``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.workloads.task import Task
from tools.benchmarks.ablation import ablation, cold, diffusion
from tools.benchmarks.cases import Case, run_cases
from tools.benchmarks.held_out import NETWORKS, heaviest, tunable
from tools.benchmarks.picked import MAKERS, picked
from tools.benchmarks.race import Arm
from tools.benchmarks.sides import ours, stock
from tools.evidence.protocol import (
    HEAVY_TRIALS,
    LONG_TRIALS,
    NETWORK_GENERATED,
    NETWORK_TRIALS,
    PICKED,
)
from tools.evidence.stores import SEARCH

SEEDS: dict[str, Sequence[int]] = {"bert_tiny": (0, 1, 2), "mobilenet_v2": (0, 1, 2)}
HEAVY_SEEDS = (0, 1, 2)


def main() -> None:
    """Race the cases of a part that are missing."""
    parts: dict[str, Callable[..., Iterator[Case]]] = {
        "heavy": heavy,
        "networks": whole,
        "long": long,
        "ablation": ablation,
        "cold": cold,
        "diffusion": diffusion,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=parts)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--only", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--bundle", default="cpu-gbdt")
    parser.add_argument(
        "--no-generated", action="store_true", help="networks without a side that generates"
    )
    given = parser.parse_args()
    cases = partial(parts[given.part], only=given.only, seeds=given.seeds)
    if given.part == "networks" and given.no_generated:
        cases = partial(cases, ways=())
    run_cases(SEARCH, cases, given.bundle, given.minutes)


def heavy(hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None) -> Iterator[Case]:
    """Yield single tasks, a seed after the other."""
    tasks = {network: heaviest(network, hardware, 2) for network in only}
    for seed in seeds or HEAVY_SEEDS:
        for network in only:
            for rank, task in enumerate(tasks[network]):
                arms = _against_stock([task], HEAVY_TRIALS, HEAVY_TRIALS, seed)
                yield Case("heavy", f"{network}-{rank}", seed, [task], arms)


def long(hardware: Hardware, only: Sequence[str], seeds: Sequence[int] | None) -> Iterator[Case]:
    """Yield the heaviest task of each network, stock with many more trials."""
    for seed in seeds or (0,):
        for network in only:
            tasks = heaviest(network, hardware, 1)
            arms = _against_stock(tasks, LONG_TRIALS, HEAVY_TRIALS, seed, tuple(MAKERS))
            yield Case("long", network, seed, tasks, arms)


def whole(
    hardware: Hardware,
    only: Sequence[str],
    seeds: Sequence[int] | None,
    ways: Sequence[str] = ("generate",),
) -> Iterator[Case]:
    """Yield whole networks, with a side that measures generated programs of each task."""
    for network in only:
        tasks = tunable(network, hardware)
        budget = NETWORK_TRIALS * len(tasks)
        for seed in seeds or SEEDS.get(network, (0,)):
            arms = _against_stock(tasks, budget, budget, seed, ways, NETWORK_GENERATED)
            yield Case("network", network, seed, tasks, arms)


def _against_stock(
    tasks: Sequence[Task],
    stock_trials: int,
    our_trials: int,
    seed: int,
    ways: Sequence[str] = (),
    count: int = PICKED,
) -> Callable[[Measurer, Bundle], list[Arm]]:
    """Race stock, costlib and, in some ways, so many programs that are picked without a search."""

    def arms(measurer: Measurer, bundle: Bundle) -> list[Arm]:
        per_task = stock_trials if len(tasks) == 1 else NETWORK_TRIALS
        return [
            stock(tasks, stock_trials, per_task, seed, measurer),
            ours("costlib", tasks, our_trials, seed, measurer, bundle, SearchConfig()),
            *(picked(way, tasks, seed, measurer, bundle, count) for way in ways),
        ]

    return arms


if __name__ == "__main__":
    main()
