"""What convolutions could gain at most if each had the layout that suits it best.

    python -m tools.benchmarks.layout_bound resnet_18 mobilenet_v1 --runs runs/layouts
    python -m tools.benchmarks.layout_bound resnet_18 --runs runs/layouts --per-task 32 --rounds 12

A network's versions in all layouts are tuned together, each with as many trials a task. Then the
best programs of all tasks take turns. A *part* of the network is a convolution with what follows it
until the next one. The bound adds up the fastest version of each part, as if changes between
layouts cost nothing; beside it stands the fastest layout for the whole network. In either, each 3 x
3 convolution is by Winograd's algorithm or not, whichever is faster, as in ``tune --layouts``. What
is chosen by one half of the turns is judged by the other, since the best of many measurements is
often a lucky one. Networks that ``tools/results/layout_bound.json`` holds are measured anew.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import Floats
from costlib.errors import UnsupportedModelError
from costlib.hardware import Hardware, find_hardware
from costlib.measure.measurer import Measurer
from costlib.tuning.database import RECORDS, WORKLOADS
from costlib.tuning.networks import NetworkSet
from costlib.tuning.result import RESULT
from costlib.tuning.result import read_result as read_run
from costlib.tuning.session import as_begun
from costlib.tuning.tune import tune
from costlib.tvm_compat import ms, relax, tvm
from costlib.tvm_compat.api import entry_argument_shapes
from costlib.workloads import load_network
from costlib.workloads.extraction import kernels_of
from costlib.workloads.layout import CHANNELS_LAST, best_block
from costlib.workloads.task import Task
from costlib.workloads.winograd import WINOGRAD
from costlib.workloads.winograd_kernels import OUTPUT
from tools.evidence.files import read_result, write_result

_RESULT = "layout_bound"

Part = Counter[str]
"""How often a part of a network calls each task, by its workload id."""


def main() -> None:
    """Measure the networks that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+", metavar="NETWORK")
    parser.add_argument("--per-task", type=int, default=8, help="trials")
    parser.add_argument("--rounds", type=int, default=6, help="turns of each program")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=Path, required=True, help="where tuned networks are kept")
    given = parser.parse_args()
    hardware = find_hardware("cpu", num_cores=given.threads)
    for name in given.networks:
        found = _measured(name, hardware, given.per_task, given.rounds, given.runs / name)
        known = read_result(_RESULT).get("networks", {})
        write_result(_RESULT, {"networks": {**known, name: found}})
        print(name, found, flush=True)


def _measured(
    name: str, hardware: Hardware, per_task: int, rounds: int, folder: Path
) -> dict[str, Any]:
    layouts = {"nchw": [name]} | {
        layout: [f"{name}+{layout}", f"{name}+{layout}+{WINOGRAD}"]
        for layout in (CHANNELS_LAST, best_block(hardware))
    }
    sources = list(_possible([one for versions in layouts.values() for one in versions]))
    networks = NetworkSet.load(sources, hardware)
    if not (folder / RESULT).exists():
        trials = per_task * len(networks.tasks)
        tune(*sources, out=folder, trials=trials, hardware=hardware, resume=folder.exists())
    with Measurer(hardware) as measurer:
        tasks = networks.as_called(hardware, as_begun(folder, measurer.config)).tasks
        taken_s = _in_turns(tasks, folder, measurer, rounds)
    parts = {
        source: parts_of(prepared, hardware.target)
        for source, prepared in zip(sources, networks.prepared, strict=True)
    }
    of_layout = {
        layout: [parts[version] for version in versions if version in parts]
        for layout, versions in layouts.items()
    }
    return {
        "hardware": hardware.hardware_id,
        "trials": read_run(folder).trials,
        "rounds": rounds,
        "parts": len(parts[name]),
        **bound({layout: ways for layout, ways in of_layout.items() if ways}, taken_s),
    }


def _possible(sources: Sequence[str]) -> Iterator[str]:
    """Leave out versions that a network does not have, as one without 3 x 3 convolutions."""
    for source in sources:
        with suppress(UnsupportedModelError):
            load_network(source)
            yield source


def parts_of(prepared: Any, target: dict[str, Any]) -> list[Part]:
    """Divide a prepared network at its convolutions, in their order.

    What comes before the first belongs to it. The first two steps of one by Winograd's algorithm
    belong to the third, wherever the network calls them.
    """
    kernels = kernels_of(prepared, target)
    parts, begun = [Part()], dict[Any, Part]()
    is_begun = False
    for block in prepared["main"].body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, relax.Call) or not isinstance(call.args[0], tvm.ir.GlobalVar):
                continue
            task = kernels[call.args[0].name_hint]
            steps = Part([task.workload_id])
            earlier = [begun.pop(one) for one in call.args[1].fields if one in begun]
            for step in earlier:
                steps += step
            if f"{WINOGRAD}_input" in task.name or (earlier and OUTPUT not in task.name):
                begun[binding.var] = steps
            elif is_begun and ("conv2d" in task.name or OUTPUT in task.name):
                parts.append(steps)
            else:
                parts[-1] += steps
                is_begun = is_begun or "conv2d" in task.name
    return parts


def bound(
    layouts: Mapping[str, Sequence[Sequence[Part]]], taken_s: Mapping[str, Floats]
) -> dict[str, Any]:
    """Compare one layout for all with the fastest for each part.

    Parameters
    ----------
    layouts
        The ways of computing a network in each layout, each as its parts.
    taken_s
        Seconds that each task took, `rounds`.

    Returns
    -------
    dict
        ``layouts_s`` of each layout and ``bound_s``, judged by the turns that did not choose;
        ``gain``, how many times as fast as the best layout the bound is; ``chosen``, how many parts
        have each layout in it.
    """
    names = list(layouts)
    costs = [
        np.array([[_cost(part, taken_s) for part in way] for way in ways])
        for ways in layouts.values()
    ]
    halves = [(slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))]
    layouts_s, bounds_s, chosen = np.zeros(len(names)), 0.0, Counter[str]()
    for choosing, judging in halves:
        chosen_s, judged_s = zip(*(_ways(cost, choosing, judging) for cost in costs), strict=True)
        best = np.argmin(chosen_s, axis=0)
        layouts_s += np.sum(judged_s, axis=1) / len(halves)
        bounds_s += float(np.array(judged_s)[best, np.arange(len(best))].sum()) / len(halves)
        chosen.update(names[number] for number in best)
    return {
        "layouts_s": dict(zip(names, layouts_s.tolist(), strict=True)),
        "bound_s": bounds_s,
        "gain": float(layouts_s.min()) / bounds_s,
        "chosen": {name: count / len(halves) for name, count in chosen.items()},
    }


def _cost(part: Part, taken_s: Mapping[str, Floats]) -> Floats:
    taken = np.array([taken_s[task] for task in part])
    found: Floats = np.array(list(part.values())) @ taken
    return found


def _ways(cost: Floats, choosing: slice, judging: slice) -> tuple[Floats, Floats]:
    """Return seconds of the faster way of each part: as chosen and as judged, `parts`.

    Parameters
    ----------
    cost
        Seconds, `ways x parts x rounds`.
    choosing, judging
        Rounds.
    """
    by, of = np.median(cost[..., choosing], axis=-1), np.median(cost[..., judging], axis=-1)
    place = (np.argmin(by, axis=0), np.arange(by.shape[1]))
    return by[place], of[place]


def _in_turns(
    tasks: Sequence[Task], folder: Path, measurer: Measurer, rounds: int
) -> dict[str, Floats]:
    """Time the best program of each task, all of them once before any is timed again."""
    database = ms.database.JSONDatabase(str(folder / WORKLOADS), str(folder / RECORDS))
    libraries, jobs, arguments = [], [], []
    for number, task in enumerate(tasks):
        schedule = database.query_schedule(task.mod, task.tvm_target(), task.name)
        libraries.append(measurer.server.folder / f"task-{number}.so")
        jobs.append(measurer.build_job(schedule.mod, libraries[-1]))
        arguments.append(entry_argument_shapes(schedule.mod))
    measurer.server.work(jobs)
    taken_s: dict[str, list[float]] = {task.workload_id: [] for task in tasks}
    for _ in range(rounds):
        for task, library, given in zip(tasks, libraries, arguments, strict=True):
            outcome, seconds = measurer.run_program(task, None, library, given)
            if seconds is None:
                raise RuntimeError(f"{task.title} does not run: {outcome.error}")
            taken_s[task.workload_id].append(seconds)
    return {task: np.array(seconds) for task, seconds in taken_s.items()}


if __name__ == "__main__":
    main()
