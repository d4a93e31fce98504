"""Tuned networks against PyTorch (oneDNN) and ``torch.compile``, on the same threads, in turns.

    python -m tools.benchmarks.torch                          # every network of the zoo
    python -m tools.benchmarks.torch resnet_18 --per-task 16

Each network is tuned in all layouts with the shipped bundle and then measured beside the other two.
It is kept in ``tools/results/raw/torch``, and ``python -m tools.evidence.pack torch`` puts it with
those that are committed; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from costlib.arrays import save_arrays
from costlib.hardware import Hardware
from costlib.measure.config import NetworkJob
from costlib.measure.jobs import fastest_call
from costlib.measure.measurer import Measurer
from costlib.tuning.config import TuneConfig
from costlib.tuning.result import TaskResult
from costlib.tuning.tune import tune
from costlib.workloads import extract_tasks, load_network
from costlib.workloads.torch_reference import TorchReference
from costlib.workloads.zoo import list_networks
from tools.evidence.beside_torch import BesideTorch, SlowTask
from tools.evidence.stores import TORCH

TURNS = 7
TURN_SECS = 0.3
MOST_NAMED = 5


def main() -> None:
    """Measure the networks that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=list_networks())
    parser.add_argument("--per-task", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    for name in given.networks:
        if name in TORCH or time.monotonic() > end:
            continue
        found = against_torch(name, given.per_task)
        TORCH.save(found)
        print(name, f"{found.tuned_s:.6f} s,", found.others_s, flush=True)


def against_torch(name: str, per_task: int) -> BesideTorch:
    """Tune a network, then run it, PyTorch and ``torch.compile`` in turns."""
    hardware = Hardware.local()
    trials = per_task * len(extract_tasks(name, hardware))
    with tempfile.TemporaryDirectory(prefix="costlib-") as scratch:
        out = Path(scratch) / "run"
        result = tune(name, out=out, trials=trials, config=TuneConfig(layouts="all"))
        (tuned,) = result.networks
        network = load_network(name)
        assert isinstance(network.reference, TorchReference)
        inputs = network.random_inputs(0)
        save_arrays(out / "inputs.safetensors", inputs)
        job = NetworkJob(
            path=tuned.library, inputs=str(out / "inputs.safetensors"), outputs=None, secs=TURN_SECS
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
    ranges = {f"{label}_range_s": (min(secs), max(secs)) for label, secs in turns.items()}
    return BesideTorch(
        network=name,
        version=tuned.network,
        hardware=hardware.hardware_id,
        bundle=result.bundle,
        trials=result.trials,
        minutes=round(result.elapsed_s / 60, 1),
        not_compiled=reason,
        slowest_tasks=_slowest(result.tasks, tuned.network),
        **medians,
        **ranges,
    )


def _slowest(tasks: tuple[TaskResult, ...], network: str) -> tuple[SlowTask, ...]:
    """Name the tasks that take most of a network's time."""
    rows = [
        SlowTask(
            task=f"{task.name}-{task.workload_id[:6]}",
            calls=task.calls[network],
            ms=round(1e3 * task.calls[network] * task.latency_after_s, 4),
            gflops_per_s=round(task.gflops_per_s or 0, 1),
        )
        for task in tasks
        if network in task.calls and task.latency_after_s
    ]
    return tuple(sorted(rows, key=lambda row: -row.ms)[:MOST_NAMED])


if __name__ == "__main__":
    main()
