"""Tuned networks against PyTorch (oneDNN) and ``torch.compile``, on the same threads, in turns.

    python tools/bench_torch.py                          # every network of the zoo
    python tools/bench_torch.py resnet_18 --per-task 16
    python tools/bench_torch.py --summary                # tools/results/torch.json

Each network is tuned in all layouts with the shipped bundle and then measured beside the other two.
A network is a file in ``tools/results/torch/``; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import gmean

from costlib.hardware import Hardware
from costlib.measure.config import NetworkJob
from costlib.measure.jobs import fastest_call
from costlib.measure.measurer import Measurer
from costlib.tuning.result import TaskResult
from costlib.tuning.tune import tune
from costlib.workloads import extract_tasks, load_network
from costlib.workloads.network import TorchReference
from costlib.workloads.zoo import list_networks

RESULTS = Path(__file__).parent / "results"
FOLDER = RESULTS / "torch"
TURNS = 7
TURN_SECS = 0.3
MOST_NAMED = 5


def main() -> None:
    """Measure the networks that are missing, or summarise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=list_networks())
    parser.add_argument("--per-task", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    if arguments.summary:
        (RESULTS / "torch.json").write_text(json.dumps(summary(), indent=1) + "\n")
        return
    FOLDER.mkdir(exist_ok=True)
    end = time.monotonic() + 60 * arguments.minutes
    for name in arguments.networks:
        file = FOLDER / f"{name}.json"
        if file.exists() or time.monotonic() > end:
            continue
        found = against_torch(name, arguments.per_task)
        file.write_text(json.dumps(found, indent=1) + "\n")
        print(name, {k: v for k, v in found.items() if k.endswith("_s")}, flush=True)


def against_torch(name: str, per_task: int) -> dict[str, Any]:
    """Tune a network, then run it, PyTorch and ``torch.compile`` in turns."""
    hardware = Hardware.local()
    trials = per_task * len(extract_tasks(name, hardware))
    with tempfile.TemporaryDirectory(prefix="costlib-") as scratch:
        out = Path(scratch) / "run"
        result = tune(name, out=out, trials=trials, try_layouts=True)
        (tuned,) = result.networks
        network = load_network(name)
        assert network.reference is not None
        inputs = network.random_inputs(0)
        np.savez(out / "inputs.npz", *inputs)
        job = NetworkJob(
            path=tuned.library, inputs=str(out / "inputs.npz"), outputs=None, secs=TURN_SECS
        )
        calls = {"pytorch": network.reference.timed(inputs)}
        compiled = TorchReference(torch.compile(network.reference.module)).timed(inputs)
        reason = None
        try:
            compiled()
            calls["compiled"] = compiled
        except Exception as error:  # Whatever it is that this network cannot be compiled for.
            reason = str(error).splitlines()[0]
        turns: dict[str, list[float]] = {"tuned": [], **{label: [] for label in calls}}
        with Measurer(hardware) as measurer:
            for _ in range(TURNS):
                timing = measurer.run_job(job).timing
                assert timing is not None, "it ran a moment ago"
                turns["tuned"].append(timing.run_secs[0])
                for label, call in calls.items():
                    turns[label].append(fastest_call(call, TURN_SECS))
    medians = {f"{label}_s": float(np.median(secs)) for label, secs in turns.items()}
    return {
        "network": name,
        "version": tuned.network,
        "hardware": hardware.hardware_id,
        "bundle": result.bundle,
        "trials": result.trials,
        "minutes": round(result.elapsed_s / 60, 1),
        **medians,
        "range": {label: [min(secs), max(secs)] for label, secs in turns.items()},
        "not_compiled": reason,
        "slowest_tasks": _slowest(result.tasks, tuned.network),
    }


def _slowest(tasks: tuple[TaskResult, ...], network: str) -> list[dict[str, Any]]:
    """Name the tasks that take most of a network's time."""
    rows = [
        {
            "task": f"{task.name}-{task.workload_id[:6]}",
            "calls": task.calls[network],
            "ms": round(1e3 * task.calls[network] * task.latency_after_s, 4),
            "gflops_per_s": round(task.gflops_per_s or 0, 1),
        }
        for task in tasks
        if network in task.calls and task.latency_after_s
    ]
    return sorted(rows, key=lambda row: -float(row["ms"]))[:MOST_NAMED]


def summary() -> dict[str, Any]:
    """Put the networks of each machine into a table: PyTorch's latency by the tuned network's."""
    tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in sorted(FOLDER.glob("*.json")):
        found = json.loads(file.read_text())
        others = {k: found[k] for k in ("pytorch_s", "compiled_s") if k in found}
        tables[found["hardware"]].append(
            {
                "network": found["network"],
                "version": found["version"],
                "trials": found["trials"],
                "tuned_ms": round(1e3 * found["tuned_s"], 3),
                **{k.replace("_s", "_ms"): round(1e3 * v, 3) for k, v in others.items()},
                "speedup": {
                    k.removesuffix("_s"): round(v / found["tuned_s"], 3) for k, v in others.items()
                },
                "slowest_tasks": found["slowest_tasks"],
            }
        )
    return {"machines": [_machine(hardware, rows) for hardware, rows in tables.items()]}


def _machine(hardware: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    speedups = {
        other: [row["speedup"][other] for row in rows if other in row["speedup"]]
        for other in ("pytorch", "compiled")
    }
    return {
        "hardware": hardware,
        "geometric_mean": {k: round(float(gmean(v)), 3) for k, v in speedups.items()},
        "median": {k: round(float(np.median(v)), 3) for k, v in speedups.items()},
        "not_slower_than_pytorch": sum(one >= 1 for one in speedups["pytorch"]),
        "networks": rows,
    }


if __name__ == "__main__":
    main()
