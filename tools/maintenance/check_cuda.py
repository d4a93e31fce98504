"""Build, measure and search programs on an NVIDIA GPU, and say what worked.

    python -m tools.maintenance.check_cuda OUT      # takes about ten minutes

Each part goes on where the one before it failed, and what each of them found is written to
``OUT/cuda.json``; called again, parts that ran through are left and the others go on. A few
programs of each operator are measured and their output is compared with the unscheduled program's
on the CPU; two networks are tuned, compared with their originals and timed beside PyTorch; the
search without a bundle and random programs take turns at two operators, which PyTorch runs too;
random programs of each operator are measured into the dataset ``OUT/dataset``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from costlib.collecting.collect import collect
from costlib.collecting.plan import Mix
from costlib.data.dataset import Dataset
from costlib.errors import CostlibError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.schema import Status
from costlib.search.config import SearchConfig
from costlib.search.random_search import RandomConfig
from costlib.tuning.config import TuneConfig
from costlib.tuning.session import RUN
from costlib.tuning.tune import tune
from costlib.tvm_compat import tvm
from costlib.tvm_compat.cuda import find_compiler
from costlib.workloads import load_network
from costlib.workloads.zoo import network_spec
from tools.benchmarks.operators import OPERATORS, heaviest_task, random_candidates
from tools.benchmarks.race import race
from tools.benchmarks.sides import ours

CHECKED_OPERATORS = tuple(OPERATORS[i] for i in (0, 3, 5, 8))
CHECKED_PROGRAMS = 2
SEARCHED_OPERATORS = CHECKED_OPERATORS[:2]
NETWORKS = ("resnet_18", "bert_small")
NETWORK_TRIALS = 34
NETWORK_MINUTES = 2
TRIALS = 32
PROGRAMS = 32
MAX_SECS = 150
CONFIG = MeasureConfig(build_timeout_secs=60)


def main() -> int:
    """Run all parts; the exit code says whether all of them ran through."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="a folder for what is found")
    out = parser.parse_args().out
    try:
        hardware = Hardware.local_cuda()
        found: dict[str, Any] = {"compiler": find_compiler()}
    except CostlibError as error:
        print(error)
        return error.exit_code
    out.mkdir(parents=True, exist_ok=True)
    found |= {"tvm": tvm.__version__, "hardware": hardware.hardware_id}
    found |= _earlier(out / "cuda.json", found)
    parts: tuple[Callable[[Hardware, Path], Any], ...] = (
        _outputs,
        _networks,
        _pytorch,
        _search,
        _collected,
    )
    for part in parts:
        name, start = part.__name__.strip("_"), time.monotonic()
        if "error" not in found.get(name, {"error": "it has not run"}):
            continue
        print(name, flush=True)
        try:
            found[name] = part(hardware, out)
        except Exception as error:
            traceback.print_exc(file=sys.stdout)
            found[name] = {"error": str(error)}
        found[f"{name}_took_s"] = round(time.monotonic() - start)
        (out / "cuda.json").write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found[name], indent=1), flush=True)
    return int(any("error" in found[part.__name__.strip("_")] for part in parts))


def _earlier(file: Path, same: dict[str, Any]) -> dict[str, Any]:
    """Read what an earlier call found with the same versions on the same hardware."""
    known = json.loads(file.read_text()) if file.exists() else {}
    return known if known.items() >= same.items() else {}


def _networks(hardware: Hardware, out: Path) -> dict[str, Any]:
    """Tune networks, compare them with their originals and time PyTorch on the device."""
    return {name: _network(name, hardware, out / name) for name in NETWORKS}


def _network(name: str, hardware: Hardware, folder: Path) -> dict[str, Any]:
    resume = (folder / RUN).exists()
    config = TuneConfig(measure=CONFIG)
    result = tune(
        name,
        out=folder,
        trials=NETWORK_TRIALS,
        minutes=NETWORK_MINUTES,
        hardware=hardware,
        resume=resume,
        config=config,
    )
    (network,) = result.networks
    found = {
        "trials": result.trials,
        "untuned_us": _microseconds(network.latency_before_s),
        "tuned_us": _microseconds(network.latency_after_s),
        "pytorch_us": _microseconds(_eager_secs(name)),
        "max_abs_error": network.max_abs_error,
        "max_abs_output": network.max_abs_output,
        "left": sum(task.left is not None for task in result.tasks),
    }
    print(name, found, flush=True)
    return found


def _eager_secs(name: str, repeats: int = 100) -> float:
    """Return the least seconds of a call of a network in PyTorch, eager, in single precision."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    spec = network_spec(name)
    module = spec.build(spec.size).eval().cuda()
    inputs = [torch.from_numpy(array).cuda() for array in load_network(name).random_inputs(0)]
    taken = []
    with torch.no_grad():
        for _ in range(repeats):
            torch.cuda.synchronize()
            start = time.perf_counter()
            module(*inputs)
            torch.cuda.synchronize()
            taken.append(time.perf_counter() - start)
    return min(taken)


def _outputs(hardware: Hardware, _: Path) -> dict[str, Any]:
    """Compare programs' output with the unscheduled program's, on the CPU."""
    config = CONFIG.model_copy(update={"check_output": True, "run_timeout_secs": 30})
    found: dict[str, Any] = {}
    with Measurer(hardware, config) as measurer:
        for operator in CHECKED_OPERATORS:
            task = heaviest_task(operator, hardware)
            drawn = random_candidates(task, CHECKED_PROGRAMS, seed=1)
            found[operator] = [
                {"status": m.status, "us": _microseconds(m.latency_s), "error": m.error}
                for m in measurer.measure(task, drawn)
            ]
    return found


def _pytorch(_: Hardware, __: Path) -> dict[str, Any]:
    """Time PyTorch's kernels of the operators that are searched, in full single precision."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    matrix = torch.randn(512, 512, device="cuda")
    images = torch.randn(1, 64, 56, 56, device="cuda")
    weights = torch.randn(64, 64, 3, 3, device="cuda")
    calls = (lambda: matrix @ matrix, lambda: torch.conv2d(images, weights, padding=1))
    return {
        operator: _microseconds(_graph_secs(torch, call))
        for operator, call in zip(SEARCHED_OPERATORS, calls, strict=True)
    }


def _graph_secs(torch: Any, call: Callable[[], Any], calls: int = 50, repeats: int = 10) -> float:
    """Return the least seconds of a call, of many in one graph."""
    for _ in range(20):
        call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    taken = []
    for _ in range(repeats):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        events[0].record()
        graph.replay()
        events[1].record()
        torch.cuda.synchronize()
        taken.append(events[0].elapsed_time(events[1]) / 1e3 / calls)
    return float(min(taken))


def _search(hardware: Hardware, _: Path) -> dict[str, Any]:
    """Let the search without a bundle and random programs take turns."""
    found = {}
    for operator in SEARCHED_OPERATORS:
        task = heaviest_task(operator, hardware).times(1)
        configs = {"search": SearchConfig(), "random": SearchConfig(strategy=RandomConfig())}
        with Measurer(hardware, CONFIG) as measurer:
            arms = [
                ours(name, [task], TRIALS, 0, measurer, None, config)
                for name, config in configs.items()
            ]
            race(arms, measurer)
        found[operator] = {
            arm.name: {
                "trials": len(arm.trials),
                "failed": sum(s is None for _, s, _ in arm.trials),
                "best_us": _microseconds(min(s for _, s in arm.again)),
                "active_s": round(arm.active_s, 1),
                "measure_s": round(arm.measure_s, 1),
            }
            for arm in arms
        }
        print(operator, found[operator], flush=True)
    return found


def _collected(hardware: Hardware, out: Path) -> dict[str, Any]:
    """Measure random programs into the dataset and say what it holds."""
    collect(
        [heaviest_task(operator, hardware) for operator in CHECKED_OPERATORS],
        out / "dataset",
        programs_per_task=PROGRAMS,
        hardware=hardware,
        mix=Mix(evolved=0, mutated=0),
        config=CONFIG,
        minutes=MAX_SECS / 60,
        on_progress=lambda p: print(f"{p.done}/{p.total} {p.task}", flush=True),
    )
    dataset = Dataset.open(out / "dataset")
    names = dataset.scan("workloads").select("workload_id", "name")
    records = dataset.scan().join(names, on="workload_id").collect()
    fine = records.filter(pl.col("status") == str(Status.OK))
    tasks = {
        f"{name} {workload_id[:6]}": {
            "programs": group.height,
            "best_us": _microseconds(group["latency_s"].min()),
            "worst_us": _microseconds(group["latency_s"].max()),
            "raced": int(group["raced"].sum()),
        }
        for (name, workload_id), group in fine.group_by("name", "workload_id", maintain_order=True)
    }
    compute_s = fine["canary_compute"].list.min()
    return {
        "statuses": dict(Counter(records["status"])),
        "errors": dict(Counter(records["error"].drop_nulls()).most_common(10)),
        "tasks": tasks,
        "compute_canary_us": [_microseconds(compute_s.min()), _microseconds(compute_s.max())],
    }


def _microseconds(seconds: Any) -> float | None:
    return None if seconds is None else float(f"{seconds * 1e6:.4g}")


if __name__ == "__main__":
    sys.exit(main())
