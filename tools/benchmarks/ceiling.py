"""What would a perfect model get against the labels of the held-out tasks?

    python -m tools.benchmarks.ceiling              # writes tools/results/ceiling.json
    python -m tools.benchmarks.ceiling --tasks 5    # a quick run, of the first five tasks alone

The ten best programs of each task are built once, then looked at five times: each look goes through
all tasks before the next one begins, so that the looks at a program are spread over time. The
median of a program's looks counts as the truth (:mod:`tools.evidence.ceiling_summary`). The labels
in the dataset stay as they are.

It runs on a processor that labels were measured on, and judges those. Killed, or stopped by
``--minutes``, the same call goes on; ``--work`` has what is done, and is removed to begin anew.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from costlib.data.dataset import Dataset
from costlib.data.task_tables import title_of
from costlib.measure.measurer import Measurer
from costlib.training.batches import most_frequent_hardware, workload_rows
from costlib.training.protocol import network_weights
from tools.benchmarks.top_programs import TopPrograms, Workbench, top_programs
from tools.evidence.ceiling_summary import LookedAt, summarise_ceiling
from tools.evidence.files import REPOSITORY, ZOO, write_result
from tools.evidence.labels import is_here

TOP = 10
LOOKS = 5

BUILD, LOOK = "build", "look"
_SECS = {BUILD: 0.25, LOOK: 0.13}
"""About what a program takes; it counts as the first that was timed."""

_SAID_EACH_S = 10.0


def main() -> None:
    """Build and look at what is missing; write the result when nothing is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    parser.add_argument("--tasks", type=int, help="only the first so many")
    parser.add_argument("--looks", type=int, default=LOOKS, help="at least 2")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "runs" / "ceiling")
    given = parser.parse_args()
    if given.looks < 2:
        parser.error("one look says nothing of how far looks differ")
    if given.tasks is not None and given.tasks < 1:
        parser.error("there is nothing to look at")
    dataset = Dataset.open(given.dataset).held_out()
    if dataset is None:
        parser.error(f"{given.dataset} has no held-out networks")
    labelled = dataset.hardware()
    here = [name for name, hardware in labelled.items() if is_here(hardware)]
    hardware_id = most_frequent_hardware(dataset.scan(), here) if here else None
    if hardware_id is None:
        sys.exit(f"the labels were measured on {', '.join(labelled)}, which this machine is not")
    hardware = labelled[hardware_id]
    tops = top_programs(dataset, hardware_id, TOP)[: given.tasks]
    bench, numbers = Workbench(given.work, dataset, hardware), range(1, given.looks + 1)
    with Measurer(hardware, reference=dataset.canary(hardware_id)) as measurer:
        end = time.monotonic() + 60 * given.minutes
        if not _run(_pieces(tops, numbers, bench), measurer, end):
            print(f"stopped after {given.minutes:g} min; the same call goes on")
            return
    found = _found(tops, numbers, bench, dataset)
    settings = {"hardware": hardware_id, "top": TOP, "looks": given.looks}
    write_result("ceiling", settings | found)
    print(json.dumps(settings | {name: found[name] for name in found if name != "by_task"}))


def _found(
    tops: Sequence[TopPrograms], numbers: Iterable[int], bench: Workbench, dataset: Dataset
) -> dict[str, Any]:
    """Return what all looks come to; programs that did not run each time are left out."""
    titles = {row["workload_id"]: title_of(row) for row in workload_rows(dataset).values()}
    tasks, minutes = [], []
    for top in tops:
        looks = [look for number in numbers if (look := bench.looked(top, number)) is not None]
        whole = [name for name in top.labels if all(look.latency_s.get(name) for look in looks)]
        minutes.append((looks[-1].at - looks[0].at).total_seconds() / 60)
        if len(whole) > 1:
            labels = np.array([top.labels[name] for name in whole])
            latency_s = np.array([[look.latency_s[name] for name in whole] for look in looks])
            title = titles[top.workload_id]
            tasks.append(LookedAt(top.workload_id, title, labels, latency_s))
    if not tasks:
        sys.exit("no task has two programs that were built and ran each time")
    found = summarise_ceiling(tasks, network_weights(dataset))
    return {
        "minutes_from_first_to_last": round(float(np.median(minutes)), 1),
        "left_out": sum(len(top.labels) for top in tops) - found["programs"],
        **found,
    }


@dataclass(frozen=True)
class _Piece:
    """Something to do that is kept when it is done."""

    kind: str
    what: str
    programs: int
    do: Callable[[Measurer], None]


def _pieces(tops: Sequence[TopPrograms], looks: Iterable[int], bench: Workbench) -> list[_Piece]:
    """Return all that is missing, in order."""
    found = [
        _Piece(BUILD, "building", len(top.labels), partial(bench.build, top))
        for top in tops
        if bench.built(top) is None
    ]
    return found + [
        _Piece(LOOK, f"look {number}", len(top.labels), partial(bench.look, top, number))
        for number in looks
        for top in tops
        if bench.looked(top, number) is None
    ]


def _run(pieces: Sequence[_Piece], measurer: Measurer, deadline: float) -> bool:
    """Do the pieces until the deadline; return whether all are done."""
    secs, programs = dict(_SECS), dict.fromkeys(_SECS, 1)
    said_at = 0.0
    for place, piece in enumerate(pieces):
        if (began := time.monotonic()) > deadline:
            return False
        if began - said_at > _SAID_EACH_S:
            said_at = began
            left = pieces[place:]
            left_s = sum(secs[one.kind] / programs[one.kind] * one.programs for one in left)
            print(f"{piece.what}, {len(left)} steps to go: {left_s / 60:.1f} min", flush=True)
        piece.do(measurer)
        secs[piece.kind] += time.monotonic() - began
        programs[piece.kind] += piece.programs
    return True


if __name__ == "__main__":
    main()
