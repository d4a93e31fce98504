"""What a network could gain at most if each of its convolutions had the layout that suits it best.

    python -m tools.benchmarks.layout_bound resnet_18 mobilenet_v1 --runs runs/layouts
    python -m tools.benchmarks.layout_bound densenet_small --runs runs/layouts --per-task 32

A network's versions in all layouts are tuned in one run, whose scheduler divides the trials. A
*part* of the network is a convolution with what follows it until the next one. The bound adds up
the fastest version of each part, as if changes between layouts cost nothing; beside it stands the
fastest layout for the whole network. In either, each 3 x 3 convolution is by Winograd's algorithm
or not, whichever is faster, as ``tune --layouts all`` does it. Latencies are those that the search
found. The best of many measurements is often a lucky one, and the bound chooses among more of them:
it promises too much rather than too little. A run that is there is not tuned again.
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
from costlib.tuning.networks import NetworkSet
from costlib.tuning.result import RESULT, TuneResult
from costlib.tuning.result import read_result as read_run
from costlib.tuning.tune import tune
from costlib.tvm_compat import relax, tvm
from costlib.workloads import load_network
from costlib.workloads.extraction import kernels_of
from costlib.workloads.layout import CHANNELS_LAST, best_block
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
    parser.add_argument("--per-task", type=int, default=16, help="trials")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=Path, required=True, help="where tuned networks are kept")
    given = parser.parse_args()
    hardware = find_hardware("cpu", num_cores=given.threads)
    for name in given.networks:
        found = _measured(name, hardware, given.per_task, given.runs / name)
        known = read_result(_RESULT).get("networks", {})
        write_result(_RESULT, {"networks": {**known, name: found}})
        print(name, found, flush=True)


def _measured(name: str, hardware: Hardware, per_task: int, folder: Path) -> dict[str, Any]:
    layouts = {"nchw": [name]} | {
        layout: [f"{name}+{layout}", f"{name}+{layout}+{WINOGRAD}"]
        for layout in (CHANNELS_LAST, best_block(hardware))
    }
    sources = list(_possible([one for versions in layouts.values() for one in versions]))
    networks = NetworkSet.load(sources, hardware)
    if not (folder / RESULT).exists():
        trials = per_task * len(networks.tasks)
        tune(*sources, out=folder, trials=trials, hardware=hardware, resume=folder.exists())
    run = read_run(folder)
    parts = {
        source: parts_of(prepared, hardware.target)
        for source, prepared in zip(sources, networks.prepared, strict=True)
    }
    taken_s = _taken_s(run)
    costs = {
        layout: np.array(
            [[_cost(part, taken_s) for part in parts[one]] for one in versions if one in parts]
        ).min(axis=0)
        for layout, versions in layouts.items()
        if any(one in parts for one in versions)
    }
    return {"hardware": run.hardware_id, "trials": run.trials, **bound(costs)}


def _possible(sources: Sequence[str]) -> Iterator[str]:
    """Leave out versions that a network does not have, as one without 3 x 3 convolutions."""
    for source in sources:
        with suppress(UnsupportedModelError):
            load_network(source)
            yield source


def _taken_s(run: TuneResult) -> dict[str, float]:
    return {task.workload_id: task.latency_s or np.inf for task in run.tasks}


def _cost(part: Part, taken_s: Mapping[str, float]) -> float:
    return sum(count * taken_s[task] for task, count in part.items())


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


def bound(costs: Mapping[str, Floats]) -> dict[str, Any]:
    """Compare one layout for all with the fastest for each part.

    Parameters
    ----------
    costs
        Seconds of each part in each layout, `parts`.

    Returns
    -------
    dict
        ``layouts_s`` of each layout; ``bound_s``; ``gain``, how many times as fast as the best
        layout that is; ``chosen``, how many parts have each layout in it.
    """
    table = np.array(list(costs.values()))
    layouts_s, bound_s = table.sum(axis=1), float(table.min(axis=0).sum())
    counts = np.bincount(table.argmin(axis=0), minlength=len(costs))
    return {
        "layouts_s": dict(zip(costs, layouts_s.tolist(), strict=True)),
        "bound_s": bound_s,
        "gain": float(layouts_s.min()) / bound_s,
        "chosen": dict(zip(costs, counts.tolist(), strict=True)),
    }


if __name__ == "__main__":
    main()
