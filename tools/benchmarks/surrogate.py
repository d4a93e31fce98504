"""Settings of the search against each other on a surrogate device: in minutes, not in nights.

    python -m tools.benchmarks.surrogate proof       # settings that were really raced at tasks
    python -m tools.benchmarks.surrogate networks    # with and without diffusion, whole networks
    python -m tools.benchmarks.surrogate screen directions=1 cold cold,draft=0
    python -m tools.benchmarks.surrogate budgets cold,diffusion=0 --trials 2   # whole networks
    python -m tools.benchmarks.surrogate oracle --trials 4 16 32   # told which direction pays

A surrogate (:mod:`costlib.testing.surrogate`) is fitted to all that the zoo holds of one machine,
held-out tasks included; nothing is built or run. Each search is kept in
``tools/results/raw/surrogate``, and ``python -m tools.evidence.pack surrogate`` puts it with those
that are committed. What is there is not searched again, so it can be stopped and go on, with more
tasks, seeds or settings.

*Proof* and *networks* repeat the races of ``tools.benchmarks.search``, to see whether the surrogate
puts their settings in the same order. *Screen* takes settings as ``tools.benchmarks.variants``
does, at tasks of the zoo that are not held out, so that nothing is tuned for the benchmarks, and
*budgets* at whole networks of the zoo; both search as ``tune`` does with so many trials. *Oracle*
is a screen of searches with an oracle (:mod:`tools.benchmarks.oracle`). The shipped bundles know
these tasks: where a setting uses a bundle, give one that was trained without them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.task_tables import recorded_tasks, stored_tasks
from costlib.errors import UnknownNameError
from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.schema import Origin
from costlib.search.config import SearchConfig
from costlib.search.evolution import search
from costlib.search.history import TaskHistory
from costlib.search.tasks.scheduler import TaskScheduler
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors
from costlib.testing.surrogate import Surrogate, SurrogateDevice
from costlib.tuning.budget import for_budget
from costlib.tuning.run import Batch, TuningRun
from costlib.tuning.trials import Trials
from costlib.workloads.task import Task
from tools.benchmarks.ablation import DIFFUSION_NETWORKS, Version, with_and_without
from tools.benchmarks.oracle import BY_DRAFT, BY_TRUTH, TruthOracle, told, without_oracle
from tools.benchmarks.variants import FLOPS, version_of
from tools.evidence.files import ZOO
from tools.evidence.protocol import DIFFUSION, PARTS, QUICK, changed
from tools.evidence.simulated import BUDGETS, NETWORKS, ORACLE, PROOF, SCREEN, SimulatedSearch
from tools.evidence.simulated_summary import COLD, FULL, PRESENT, RACED_AS, base_of
from tools.evidence.stores import SEARCH, SIMULATED

HARDWARE = "amd-epyc-f25m17-x86-64-v3-2c-9cfdd60a"
TRIALS = {PROOF: 16, NETWORKS: 16, SCREEN: 32, BUDGETS: 4, ORACLE: 16}
"""Of a search, for each of its tasks."""

ZOO_NETWORKS = (
    "regnet_y_400mf",
    "resnet_101@r128",
    "densenet_small",
    "squeezenet",
    "mobilenet_v1+nhwc",
    "resnet_18+nhwc",
    "efficientnet_b0",
)
"""Of which the zoo holds nearly all tasks; most of them have many that look alike."""

AS_RACED = {"growth": 0, "ahead": False}
"""What the search did not have yet when it was raced."""

_ORACLES = (BY_DRAFT, f"{COLD},{BY_TRUTH}")
"""Without a bundle nothing has draft scores at first; with one, far too many parents breed to ask
for the truth of all their children."""

_LEFT_OUT = ("generator", "growing batches", "proposing ahead")
"""Parts that were raced but cost too much here, or that were not raced with a bundle."""

_QUICK_TASKS = 3
"""Of each dataset, for a surrogate to learn from beside what it is asked."""


class Case(NamedTuple):
    """A search that is to be done for each setting."""

    what: str
    tasks: Sequence[Task]


def main() -> None:
    """Do the searches that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=tuple(TRIALS))
    parser.add_argument("settings", nargs="*", help="names, or [cold,]field=value; default: all")
    parser.add_argument("--tasks", type=int, default=10)
    parser.add_argument("--only", nargs="+", help="tasks or networks, by name")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--trials", type=int, nargs="+", help="for each task of a search")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--bundle", default="cpu-gbdt")
    given = parser.parse_args()
    keep_sketches()
    end = time.monotonic() + 60 * given.minutes
    bundle = load_pretrained(given.bundle)
    versions = settings_of(given.part, given.settings, bundle)
    zoo = Dataset.open(ZOO)
    held_out = zoo.held_out()
    assert held_out is not None
    found = cases_of(given.part, zoo, held_out, zoo.hardware()[HARDWARE])
    cases = list(islice(found, given.tasks))
    asked = {task.workload_id for case in cases for task in case.tasks}
    taught = [held_out, zoo]
    surrogate = Surrogate.fitted(taught, HARDWARE, asked, only=learnt_from(taught, asked))
    print(surrogate.fit, flush=True)
    cases = [case for case in cases if not given.only or case.what in given.only]
    budgets = given.trials or [TRIALS[given.part]]
    searches = product(given.seeds, budgets, cases, versions.items())
    for seed, trials, case, (name, version) in searches:
        if SimulatedSearch.name_of(given.part, name, case.what, seed, trials) in SIMULATED:
            continue
        if time.monotonic() > end:
            return
        done = searched(given.part, name, version, case, seed, trials, surrogate)
        SIMULATED.save(done)
        print(done.name, f"{done.curve_s[-1]:.3g}", f"{done.seconds:.1f} s", flush=True)


def learnt_from(datasets: Sequence[Dataset], asked: Collection[str]) -> set[str] | None:
    """Return the workloads that a surrogate learns from: all, or few for a quick run."""
    if not QUICK:
        return None
    ids = [one.scan("workloads").select("workload_id").collect()["workload_id"] for one in datasets]
    return set(asked).union(*(each.sort().head(_QUICK_TASKS) for each in ids))


def keep_sketches() -> None:
    """Draw a task's first random programs once a seed: they take most of a short search."""
    draw = vars(search)["sketch_vectors"]
    kept: dict[tuple[str, int], dict[str, DecisionVectors]] = {}

    def drawn(
        space: DesignSpace, seed: int, known: Iterable[Program] = ()
    ) -> dict[str, DecisionVectors]:
        others = list(known)
        key = space.task.workload_id, seed
        if others or key not in kept:
            found: dict[str, DecisionVectors] = draw(space, seed, others)
            return found if others else kept.setdefault(key, found)
        return kept[key]

    vars(search)["sketch_vectors"] = drawn


def settings_of(part: str, chosen: Sequence[str], bundle: Bundle) -> dict[str, Version]:
    """Return the settings of a part by their names, the chosen ones and those to compare with."""
    if part not in RACED_AS:
        chosen = chosen or (_ORACLES if part == ORACLE else ())
        names = dict.fromkeys([*(base_of(part, name) for name in chosen), *chosen])
        present = bundle, SearchConfig()
        plain = {name: without_oracle(name) for name in names}
        return {
            n: version_of(p, bundle) if p not in ("", PRESENT) else present
            for n, p in plain.items()
        }
    parts = PARTS if part == PROOF else DIFFUSION
    raced = with_and_without({n: c for n, c in parts.items() if n not in _LEFT_OUT})(bundle)
    versions = {n: (known, changed(config, AS_RACED)) for n, (known, config) in raced.items()}
    for name in chosen:
        if name not in versions:
            raise UnknownNameError("setting", name, versions)
    return {n: versions[n] for n in dict.fromkeys([FULL, *(chosen or versions)])}


def cases_of(part: str, zoo: Dataset, held_out: Dataset, hardware: Hardware) -> Iterator[Case]:
    """Yield what a part is searched for: what was raced, or a task of each other cluster."""
    if part == NETWORKS:
        for network in DIFFUSION_NETWORKS:
            tasks = [t for t in recorded_tasks(held_out, network, hardware) if _is_tunable(t)]
            yield Case(network, tasks)
    elif part == PROOF:
        raced = {race.what: race.tasks[0] for race in SEARCH.load() if race.kind == RACED_AS[part]}
        for what, one in raced.items():
            yield Case(what, stored_tasks(held_out, [one.workload_id], hardware))
    elif part == BUDGETS:
        measured = set(_measured(zoo))
        for network in ZOO_NETWORKS:
            recorded = recorded_tasks(zoo, network, hardware)
            tasks = [t for t in recorded if t.workload_id in measured and _is_tunable(t)]
            yield Case(network, tasks)
    else:
        clusters = set[str]()
        for workload_id in sorted(_measured(zoo)):
            (task,) = stored_tasks(zoo, [workload_id], hardware)
            space = DesignSpace(task)
            if (
                FLOPS[0] < task.flops < FLOPS[1]
                and space.is_tunable
                and space.cluster not in clusters
            ):
                clusters.add(space.cluster)
                yield Case(f"{task.name}-{task.workload_id[:6]}", [task])


def _measured(dataset: Dataset) -> list[str]:
    ran = dataset.scan().filter(pl.col("hardware") == HARDWARE)
    return ran.select("workload_id").unique().collect()["workload_id"].to_list()


def _is_tunable(task: Task) -> bool:
    return DesignSpace(task).is_tunable


def searched(
    part: str,
    name: str,
    version: Version,
    case: Case,
    seed: int,
    trials: int,
    surrogate: Surrogate,
) -> SimulatedSearch:
    """Search once."""
    bundle, config = version
    device = surrogate.device(seed)
    total = trials * len(case.tasks)
    if part not in RACED_AS:
        config = for_budget(config, total, len(case.tasks))
    weights = np.array([[float(task.weight) for task in case.tasks]])
    found = _Found(device, weights[0].tolist())
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, _oracle(name, case, surrogate, seed):
        TuningRun(
            case.tasks,
            TaskScheduler(
                weights,
                flops=[task.flops for task in case.tasks],
                similar=[task.name for task in case.tasks],
            ),
            surrogate.hardware,
            device,
            Trials(Path(folder), surrogate.hardware, seed),
            bundle=bundle,
            config=config,
            seed=seed,
        ).run(total, on_batch=found.note)
    return SimulatedSearch(
        part=part,
        setting=name,
        what=case.what,
        seed=seed,
        trials=trials,
        tasks=len(case.tasks),
        hardware=surrogate.hardware.hardware_id,
        curve_s=tuple(found.curve_s),
        seconds=round(time.perf_counter() - began, 2),
        fit=surrogate.fit.model_dump(),
    )


def _oracle(name: str, case: Case, surrogate: Surrogate, seed: int) -> AbstractContextManager[None]:
    """Return the oracle of a setting; most have none."""
    if BY_TRUTH in name:
        (task,) = case.tasks
        return told(TruthOracle(surrogate.device(seed), task))
    return told(None) if BY_DRAFT in name else nullcontext()


class _Found:
    """What the programs that a search took for the best take in truth, after each trial."""

    def __init__(self, device: SurrogateDevice, weights: Sequence[float]) -> None:
        self.curve_s: list[float] = []
        self._device = device
        self._weights = weights
        self._histories = [TaskHistory() for _ in weights]

    def note(self, batch: Batch) -> None:
        for one in batch.measurements:
            self._histories[batch.task].add(
                one.program, one.latency_s, Origin.EVOLVED, calm=one.is_calm, raced=one.raced
            )
            self.curve_s.append(sum(map(self._weighted, self._weights, self._histories)))

    def _weighted(self, weight: float, history: TaskHistory) -> float:
        if history.best is None:
            return float("inf")
        return weight * self._device.truth_s[history.best]


if __name__ == "__main__":
    main()
