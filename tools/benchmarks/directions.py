"""What knowing the best direction to change a program would be worth at most.

    python -m tools.benchmarks.directions --device surrogate --parents 100   # in minutes
    python -m tools.benchmarks.directions --parents 30 --minutes 30          # on this machine
    python -m tools.evidence.pack directions             # into tools/results/directions.json

Parents are programs near the best of tasks of the zoo that are not held out. Each has children in
every direction (:mod:`tools.benchmarks.neighbours`), distinct as code and valid, which are measured
in random order. :mod:`tools.evidence.directions_summary` says what they come to. A family is kept
in ``tools/results/raw/directions`` once it is complete; one that is there is not measured again, so
a run can be stopped at any time and go on.

The records of the machine say what is near the best, so it has to be one that the zoo knows.
Measure when the machine does nothing else; on a surrogate device nothing is built.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.task_tables import stored_tasks
from costlib.errors import UnknownNameError
from costlib.hardware import Hardware
from costlib.measure.measurement import Candidate, Measurement
from costlib.measure.measurer import Measurer
from costlib.schema import Status
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import sketch_vectors
from costlib.testing.surrogate import Surrogate
from costlib.tvm_compat.api import structural_key
from costlib.workloads.task import Task
from tools.benchmarks.neighbours import Change, changes
from tools.benchmarks.surrogate import learnt_from
from tools.benchmarks.variants import FLOPS
from tools.evidence.families import NATIVE, SURROGATE, Child, Family
from tools.evidence.files import ZOO
from tools.evidence.stores import FAMILIES

SEARCHED = "intel-xeon-f6m207-x86-64-v4-2c-b469e74d"
"""Most of whose records were found by searches, so that the best ones are near the best."""

NEAR = 1.25
"""What a parent takes at most, relative to the best record of its task."""

CHILDREN = 16
"""Of each direction, if there are so many."""

_TRIED = 4
"""How many changes are lowered at most, for each child wanted."""

_PER_TASK = 2
_BATCH = 32


class Parent(NamedTuple):
    """A program near the best of its task, and what it took relative to that."""

    program: Program
    recorded: float


class Device(Protocol):
    """What programs run on."""

    def measure(
        self, task: Task, candidates: Sequence[Candidate], best_s: float | None = None
    ) -> list[Measurement]:
        """Measure programs."""


def main() -> None:
    """Measure the families that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=(NATIVE, SURROGATE), default=NATIVE)
    parser.add_argument("--hardware", help="that a surrogate stands for", default=SEARCHED)
    parser.add_argument("--parents", type=int, default=100)
    parser.add_argument("--children", type=int, default=CHILDREN, help="of each direction")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    zoo = Dataset.open(ZOO)
    here = given.device == NATIVE
    hardware_id = Hardware.local().hardware_id if here else given.hardware
    if hardware_id not in zoo.hardware():
        raise UnknownNameError("hardware of the zoo", hardware_id, zoo.hardware())
    hardware = zoo.hardware()[hardware_id]
    parents = list(itertools.islice(parents_of(zoo, hardware_id, given.seed), given.parents))
    with _device(given.device, zoo, hardware, parents, given.seed) as device:
        _measure(device, given.device, zoo, hardware, parents, given.children, given.seed, end)


def _device(
    name: str, zoo: Dataset, hardware: Hardware, parents: Sequence[Parent], seed: int
) -> AbstractContextManager[Device]:
    if name == NATIVE:
        return Measurer(hardware, reference=zoo.canary(hardware.hardware_id))
    held_out = zoo.held_out()
    known = held_out is not None and hardware.hardware_id in held_out.hardware()
    taught = [zoo, held_out] if known and held_out is not None else [zoo]
    asked = {parent.program.workload_id for parent in parents}
    only = learnt_from(taught, asked)
    surrogate = Surrogate.fitted(taught, hardware.hardware_id, asked, seed, only)
    print(surrogate.fit, flush=True)
    return nullcontext(surrogate.device(seed))


def parents_of(zoo: Dataset, hardware_id: str, seed: int) -> Iterator[Parent]:
    """Yield programs near the best, in random order; of each task one, then of each another."""
    size = pl.col("flops").is_between(*FLOPS)
    tasks = zoo.scan("workloads").filter(size & pl.col("mod_json").is_not_null())
    ran = (pl.col("status") == str(Status.OK)) & ~pl.col("raced")
    rows = (
        zoo.scan()
        .filter((pl.col("hardware") == hardware_id) & ran)
        .join(tasks.select("workload_id"), on="workload_id", how="semi")
        .group_by("program_id")
        .agg(pl.col("workload_id", "sketch_id", "decisions").first(), pl.col("latency_s").median())
        .with_columns(recorded=pl.col("latency_s") / pl.col("latency_s").min().over("workload_id"))
        .filter(pl.col("recorded") <= NEAR)
        .sort("workload_id", "program_id")
        .collect()
        .sample(fraction=1, shuffle=True, seed=seed)
        .with_columns(turn=pl.int_range(pl.len()).over("workload_id"))
        .filter(pl.col("turn") < _PER_TASK)
        .sort("turn", maintain_order=True)
    )
    for row in rows.iter_rows(named=True):
        program = Program.from_row(row["workload_id"], row["sketch_id"], row["decisions"])
        yield Parent(program, row["recorded"])


def _measure(
    device: Device,
    name: str,
    zoo: Dataset,
    hardware: Hardware,
    parents: Sequence[Parent],
    count: int,
    seed: int,
    end: float,
) -> None:
    began, done, longest_s = time.monotonic(), 0, 0.0
    for number, parent in enumerate(parents):
        if Family.name_of(name, hardware.hardware_id, parent.program.program_id) in FAMILIES:
            continue
        start = time.monotonic()
        if start + longest_s > end:
            print("the time is up; the same call goes on")
            return
        (task,) = stored_tasks(zoo, [parent.program.workload_id], hardware)
        rng = np.random.default_rng([seed, number])
        family = measured(device, name, hardware, task, parent, count, rng)
        if family is None:
            print(f"{number + 1}/{len(parents)} {task.title}: the parent does not run", flush=True)
            continue
        FAMILIES.save(family)
        done += 1
        longest_s = max(longest_s, time.monotonic() - start)
        each_s = (time.monotonic() - began) / done
        left_min = each_s * (len(parents) - number - 1) / 60
        print(
            f"{number + 1}/{len(parents)} {task.title}: {len(family.children)} children, "
            f"{each_s:.0f} s a parent, {left_min:.0f} minutes left",
            flush=True,
        )


def measured(
    device: Device,
    name: str,
    hardware: Hardware,
    task: Task,
    parent: Parent,
    count: int,
    rng: np.random.Generator,
) -> Family | None:
    """Measure a parent and its children; ``None`` if the parent does not run."""
    space = DesignSpace(task)
    schedule = space.lower(parent.program)
    if schedule is None:
        return None
    (own,) = device.measure(task, [Candidate(parent.program, schedule, race=False)])
    if own.latency_s is None:
        return None
    born = children_of(space, Candidate(parent.program, schedule), count, rng)
    born = [born[i] for i in rng.permutation(len(born))]
    found: list[Measurement] = []
    for start in range(0, len(born), _BATCH):
        some = [candidate for _, _, candidate in born[start : start + _BATCH]]
        found += device.measure(task, some, own.latency_s)
    chances = np.array([chance for _, chance, _ in born])
    return Family(
        device=name,
        hardware=hardware.hardware_id,
        workload_id=task.workload_id,
        title=task.title,
        parent=parent.program.program_id,
        recorded=parent.recorded,
        parent_s=own.latency_s,
        children=tuple(
            Child(
                direction=change.direction,
                words=change.words,
                chance=chance,
                latency_s=one.latency_s,
                raced=one.raced,
            )
            for (change, _, _), chance, one in zip(
                born, (chances / chances.sum()).tolist(), found, strict=True
            )
        ),
    )


def children_of(
    space: DesignSpace, parent: Candidate, count: int, rng: np.random.Generator
) -> list[tuple[Change, float, Candidate]]:
    """Choose children in each direction, as many of each at most: valid, and distinct as code.

    With each comes its chance: those of a direction share the direction's, as far as changes in it
    make another valid program.
    """
    vectors = sketch_vectors(space, int(rng.integers(2**31)), [parent.program])
    by_direction: dict[str, list[Change]] = defaultdict(list)
    for change in changes(vectors[parent.program.sketch_id], parent.program):
        by_direction[change.direction].append(change)
    assert parent.schedule is not None
    known = {structural_key(parent.schedule.mod)}
    chosen = []
    for some in by_direction.values():
        born, tried = list[tuple[Change, Candidate]](), 0
        for place in rng.permutation(len(some))[: _TRIED * count].tolist():
            tried += 1
            schedule = space.lower(some[place].program)
            code = None if schedule is None else structural_key(schedule.mod)
            if code is not None and code not in known:
                known.add(code)
                born.append((some[place], Candidate(some[place].program, schedule)))
            if len(born) == count:
                break
        chance = sum(change.chance for change in some) / max(tried, 1)
        chosen += [(change, chance, candidate) for change, candidate in born]
    return chosen


if __name__ == "__main__":
    main()
