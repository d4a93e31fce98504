"""The tuning curve: how each network's latency fell, trial by trial."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from costlib.report.figures import save_figure
from costlib.tuning.result import TuneResult


def best_so_far_s(result: TuneResult, network: str) -> np.ndarray:
    """Weighted sum of the best latencies of a network's tasks after each trial of a run.

    Returns
    -------
    ndarray
        float64 `trials + 1`, in seconds; entry 0 is before the first trial. A task that does not
        run untuned counts from its first measured program on.
    """
    best = np.array([task.latency_before_s or np.nan for task in result.tasks])
    weights = np.array([task.calls.get(network, 0) for task in result.tasks], float)
    sums = [np.nansum(best * weights)]
    for point in result.curve:
        if point.best_s is not None:
            before_s = result.tasks[point.task].latency_before_s or np.inf
            best[point.task] = min(before_s, point.best_s)
        sums.append(np.nansum(best * weights))
    return np.array(sums)


def draw_curve(result: TuneResult, path: Path) -> Path:
    """Write :func:`curve_figure` as a PNG picture."""
    save_figure(curve_figure(result), path, dpi=150)
    return path


def curve_figure(result: TuneResult) -> Figure:
    """Draw each network's curve beside PyTorch's latency."""
    count = len(result.networks)
    figure = Figure(figsize=(7, 4.2 * count), layout="constrained")
    for axes, one in zip(figure.subplots(count, squeeze=False)[:, 0], result.networks, strict=True):
        curve_ms = best_so_far_s(result, one.network) * 1e3
        axes.step(range(len(curve_ms)), curve_ms, where="post", label="best programs so far (sum)")
        if one.pytorch_latency_s is not None:
            pytorch_ms = one.pytorch_latency_s * 1e3
            axes.axhline(pytorch_ms, color="tab:orange", ls="--", label="PyTorch, measured")
        tuned_ms = one.latency_after_s * 1e3
        axes.axhline(tuned_ms, color="tab:green", ls=":", label="tuned network, measured")
        axes.set_title(f"{one.network}, {result.trials} trials, bundle {result.bundle}")
        axes.set(xlabel="trials", ylabel="latency of the network (ms)", yscale="log")
        axes.grid(alpha=0.3, which="both")
        axes.legend(frameon=False)
    return figure
