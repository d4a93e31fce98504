"""Written programs against searched ones: what a bundle's generator is worth.

    python -m tools.benchmarks.generate --bundle BUNDLE

For the two heaviest tasks of each held-out network, by the same runner, sides in turns
(:mod:`tools.benchmarks.race`):

- ``generate``: the best 32 by the bundle's models of 1,024 programs that its generator wrote and
  1,024 random ones, as ``costlib generate -n 32`` picks them;
- ``written``, ``sampled``: the best of the written ones alone, and of the random ones alone;
- ``search``, ``search without``: costlib's search with 32 trials, with the generator and without
  (as ``costlib tune`` does);
- ``stock``: MetaSchedule's search, 64 trials. How much it gains after them is told by its longer
  curves of ``tools.benchmarks.search``, which may have been measured on a faster or slower day.

The speed of writing is measured against stock's sampling, 128 programs each, both up to programs
that pass the postprocessors. Races are kept in ``tools/results/raw/generate``, and ``python -m
tools.evidence.pack generate`` puts them with those that are committed; what is there is not raced
again. ``tools.benchmarks.search long`` has races of these programs with 1,000 trials of stock,
``tools.benchmarks.search networks`` races of 16 such programs of each task of whole networks. Needs
``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import numpy as np

from costlib.generator.writer import Writer
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModelConfig
from costlib.space.design_space import DesignSpace
from costlib.space.vectors import sketch_vectors
from costlib.workloads.task import Task
from tools.benchmarks.cases import Case, run_cases
from tools.benchmarks.held_out import NETWORKS, heaviest
from tools.benchmarks.picked import MAKERS, picked
from tools.benchmarks.race import Arm
from tools.benchmarks.sides import ours, stock
from tools.evidence.protocol import BESIDE_WRITTEN_TRIALS, PICKED
from tools.evidence.stores import GENERATE

TIMED = 128
SEEDS = (0, 1, 2)


def main() -> None:
    """Race the cases that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", default="cpu-gbdt")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    run_cases(GENERATE, partial(_cases, seeds=given.seeds), given.bundle, given.minutes)


def _cases(hardware: Hardware, seeds: Sequence[int]) -> Iterator[Case]:
    for seed in seeds:
        for network in NETWORKS:
            for rank, task in enumerate(heaviest(network, hardware, 2)):
                yield Case(
                    "generate",
                    f"{network}-{rank}",
                    seed,
                    [task],
                    partial(_arms, task, seed),
                    partial(_speed, task, seed),
                )


def _arms(task: Task, seed: int, measurer: Measurer, bundle: Bundle) -> list[Arm]:
    searches = {
        "search": SearchConfig(models=RunModelConfig(generator=True)),
        "search without": SearchConfig(models=RunModelConfig(generator=False)),
    }
    return [
        *(picked(way, [task], seed, measurer, bundle) for way in MAKERS),
        *(
            ours(name, [task], PICKED, seed, measurer, bundle, config)
            for name, config in searches.items()
        ),
        stock([task], BESIDE_WRITTEN_TRIALS, BESIDE_WRITTEN_TRIALS, seed, measurer),
    ]


def _speed(
    task: Task, seed: int, measurer: Measurer, bundle: Bundle
) -> dict[str, dict[str, float]]:
    """Return programs per second, and how many of the written ones are valid."""
    hardware = measurer.hardware
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


if __name__ == "__main__":
    main()
