"""Settings of the search against each other, on invented tasks: what to make a default.

    python -m tools.benchmarks.variants population=1024 survivors=3,epsilon=0.2 --tasks 12
    python -m tools.benchmarks.variants cold cold,draft=0     # without a bundle
    python -m tools.benchmarks.variants bundle=adapted        # with another one than --bundle

No network of the benchmarks is looked at, so that nothing is tuned for them. Each task is a race
with every trial of all sides, which take turns (:mod:`tools.benchmarks.race`); it is kept in
``tools/results/raw/variants``, and ``python -m tools.evidence.pack variants`` puts it with those
that are committed. What is there is not raced again. *Present* is the search as it was on that day,
*cold* the same without a bundle, to which its variants are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

from costlib.generator.invented import invented_tasks
from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.search.config import SearchConfig
from costlib.space.design_space import DesignSpace
from tools.benchmarks.ablation import Version, racing
from tools.benchmarks.cases import Case, run_cases
from tools.evidence.protocol import changed
from tools.evidence.stores import VARIANTS
from tools.evidence.variants_summary import COLD, COUNTS, PRESENT

SEED = 3_000_000
"""Far from those of trainings; another one gives tasks on which nothing was chosen yet."""
FLOPS = (2e7, 1e9)
"""Smaller tasks are done too soon, larger ones take too long."""


def main() -> None:
    """Race at the tasks that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variants", nargs="+", help="[cold,]field=value[,field=value]")
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--trials", type=int, default=COUNTS[-1])
    parser.add_argument("--seed", type=int, default=SEED, help="of the invented tasks")
    parser.add_argument("--bundle", default="cpu-gbdt")
    given = parser.parse_args()
    cases = partial(
        of_invented_tasks,
        variants=given.variants,
        count=given.tasks,
        trials=given.trials,
        seed=given.seed,
    )
    run_cases(VARIANTS, cases, given.bundle)


def of_invented_tasks(
    hardware: Hardware, variants: Sequence[str], count: int, trials: int, seed: int
) -> Iterator[Case]:
    """Yield so many invented tasks, neither small nor large."""
    invented = invented_tasks(100 * count, hardware, (), seed)
    tasks = (t for t in invented if FLOPS[0] < t.flops < FLOPS[1] and DesignSpace(t).is_tunable)
    for number, task in enumerate(islice(tasks, count)):
        arms = racing([task.times(1)], trials, number, partial(_versions, variants))
        what = f"{task.name}-{task.workload_id[:6]}"
        details = {"tasks_seed": seed, "search_seed": number}
        yield Case("variants", what, None, [task.times(1)], arms, lambda *_, d=details: d)


def _versions(variants: Sequence[str], bundle: Bundle) -> dict[str, Version]:
    present: dict[str, Version] = {PRESENT: (bundle, SearchConfig())}
    return present | {text: version_of(text, bundle) for text in variants}


def version_of(text: str, bundle: Bundle) -> Version:
    """Read ``[cold,]field=value,field=value``; another bundle is a field, too."""
    parts = text.split(",")
    changes = dict(part.split("=", 1) for part in parts if part != COLD)
    if (other := changes.pop("bundle", None)) is not None:
        bundle = load_pretrained(other)
    return None if COLD in parts else bundle, changed(SearchConfig(), changes)


if __name__ == "__main__":
    main()
