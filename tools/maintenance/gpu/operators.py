"""Steps with single operators: are outputs right, how fast is PyTorch, does the search pay."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from costlib.measure.config import CanaryJob
from costlib.measure.gpu_state import gpu_state
from costlib.search.config import SearchConfig
from costlib.search.random_search import RandomConfig
from tools.benchmarks.operators import OPERATORS, heaviest_task, random_candidates
from tools.benchmarks.race import Arm, race
from tools.benchmarks.sides import ours, stock
from tools.maintenance.gpu.bench import Bench, microseconds

CHECKED = tuple(OPERATORS[i] for i in (0, 3, 5, 8))
SEARCHED = CHECKED[:2]
_PROGRAMS = 2
_TRIALS = 32
_STOCK_TRIALS = 256
"""A tenth of these is what costlib is to need."""

_CANARIES = 30


def canaries(bench: Bench) -> dict[str, Any]:
    """Time the canaries for a moment, and look at the clocks before and after.

    In a rehearsal they are this machine's own.
    """
    before = gpu_state()
    with bench.measurer() as measurer:
        outcome = measurer.run_job(CanaryJob(samples=_CANARIES))
    if outcome.timing is None:
        raise RuntimeError(str(outcome.error))
    states = [state.model_dump() for state in (before, gpu_state()) if state is not None]
    return {
        "compute_us": _spread(outcome.timing.canary_compute),
        "memory_us": _spread(outcome.timing.canary_memory),
        "gpu": states,
    }


def _spread(seconds: Sequence[float]) -> list[float | None]:
    """Return the least, the median and the most."""
    return [microseconds(float(np.quantile(seconds, share))) for share in (0, 0.5, 1)]


def outputs(bench: Bench) -> dict[str, Any]:
    """Compare programs' output with the unscheduled program's, on the CPU."""
    found: dict[str, Any] = {}
    checked = not bench.is_rehearsal
    with bench.measurer(check_output=checked, run_timeout_secs=30.0) as measurer:
        for operator in CHECKED:
            task = heaviest_task(operator, bench.hardware)
            drawn = random_candidates(task, _PROGRAMS, seed=1)
            found[operator] = [
                {"status": m.status, "us": microseconds(m.latency_s), "error": m.error}
                for m in measurer.measure(task, drawn)
            ]
    return found


def pytorch(bench: Bench) -> dict[str, Any]:
    """Time PyTorch's kernels of the operators that are searched, in full single precision."""
    import torch

    device = "cpu" if bench.is_rehearsal else "cuda"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    matrix = torch.randn(512, 512, device=device)
    images = torch.randn(1, 64, 56, 56, device=device)
    weights = torch.randn(64, 64, 3, 3, device=device)
    calls = (lambda: matrix @ matrix, lambda: torch.conv2d(images, weights, padding=1))
    timed = _call_secs if bench.is_rehearsal else _graph_secs
    return {
        operator: microseconds(timed(torch, call))
        for operator, call in zip(SEARCHED, calls, strict=True)
    }


def search(bench: Bench) -> dict[str, Any]:
    """Let the search without a bundle and random programs take turns."""
    configs = {"search": SearchConfig(), "random": SearchConfig(strategy=RandomConfig())}
    trials = bench.programs(_TRIALS)

    def arms(task: Any, measurer: Any) -> list[Arm]:
        return [ours(n, [task], trials, 0, measurer, None, c) for n, c in configs.items()]

    return _raced(bench, SEARCHED, arms)


def beside_stock(bench: Bench) -> dict[str, Any]:
    """Let stock MetaSchedule and costlib take turns, and note both curves."""
    trials = bench.programs(_STOCK_TRIALS)

    def arms(task: Any, measurer: Any) -> list[Arm]:
        return [
            stock([task], trials, trials, 0, measurer),
            ours("costlib", [task], max(trials // 4, 1), 0, measurer, None, SearchConfig()),
        ]

    return _raced(bench, SEARCHED[:1], arms, curves=True)


def _raced(
    bench: Bench,
    operators: Sequence[str],
    arms: Callable[[Any, Any], list[Arm]],
    *,
    curves: bool = False,
) -> dict[str, Any]:
    found = {}
    for operator in operators:
        task = heaviest_task(operator, bench.hardware).times(1)
        with bench.measurer() as measurer:
            sides = arms(task, measurer)
            race(sides, measurer)
        found[operator] = {arm.name: _outline(arm, curves=curves) for arm in sides}
        print(operator, {name: side["best_us"] for name, side in found[operator].items()})
    return found


def _outline(arm: Arm, *, curves: bool) -> dict[str, Any]:
    best = None
    curve = []
    for _, latency_s, _ in arm.trials:
        best = min((s for s in (best, latency_s) if s is not None), default=None)
        curve.append(microseconds(best))
    outline = {
        "trials": len(arm.trials),
        "failed": sum(s is None for _, s, _ in arm.trials),
        "best_us": microseconds(min((s for _, s in arm.again), default=None)),
        "active_s": round(arm.active_s, 1),
        "measure_s": round(arm.measure_s, 1),
    }
    return outline | ({"curve_us": curve} if curves else {})


def _call_secs(torch: Any, call: Callable[[], Any], repeats: int = 5) -> float:
    """Return the least seconds of a call on the CPU."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def _graph_secs(torch: Any, call: Callable[[], Any], calls: int = 50, repeats: int = 10) -> float:
    """Return the least seconds of a call on the GPU, of many in one graph."""
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
