"""The tuning curve: how each network's latency fell, by trials and by seconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costlib.arrays import Floats
from costlib.report.figures import (
    finish,
    panel,
    plain_ticks,
    save_figure,
    tip,
    whole_ticks,
)
from costlib.report.found_run import FoundRun, find_run
from costlib.report.page import Choice, Picture
from costlib.report.units import Unit
from costlib.schema import Origin
from costlib.tuning.result import NetworkResult, TuneResult

By = Literal["trials", "seconds"]

_SHOWN = 2.5
"""Multiple of the lowest latency up to which a curve is shown: what is above is long over."""


@dataclass(frozen=True)
class Curve:
    """A network's latency after each trial, its entry 0 before the first one.

    Attributes
    ----------
    trials, seconds
        Where each entry stands.
    latency_s, low_s, high_s
        float64 `trials + 1`: the sum of the tasks' best programs, of their fastest repeats, and of
        their slowest.
    """

    trials: Floats
    seconds: Floats
    latency_s: Floats
    low_s: Floats
    high_s: Floats

    def times(self, factor: float) -> Curve:
        """Return the curve with all latencies multiplied."""
        sums = (self.latency_s * factor, self.low_s * factor, self.high_s * factor)
        return Curve(self.trials, self.seconds, *sums)


def best_so_far_s(result: TuneResult, network: str) -> Floats:
    """Weighted sum of the best latencies of a network's tasks after each trial of a run.

    Returns
    -------
    ndarray
        float64 `trials + 1`, in seconds; entry 0 is before the first trial. A task that does not
        run untuned counts from its first measured program on.
    """
    return _sums(result, network, [1.0] * len(result.curve))


def curve_of(run: FoundRun, network: str) -> Curve:
    """Return how a network of a run got faster, all latencies corrected to one state."""
    result = run.result
    low, high = _spread(run)
    return Curve(
        np.arange(len(result.curve) + 1.0),
        np.array([0.0, *(point.elapsed_s for point in result.curve)]),
        best_so_far_s(result, network),
        _sums(result, network, low),
        _sums(result, network, high),
    )


def _sums(result: TuneResult, network: str, factors: list[float]) -> Floats:
    """The sums of :func:`best_so_far_s`, each trial's best latency times a factor."""
    before = [task.latency_before_s or np.nan for task in result.tasks]
    best = np.array(before)
    weights = np.array([task.calls.get(network, 0) for task in result.tasks], float)
    known = np.nan_to_num(best * weights)
    total = float(known.sum())
    sums = [total]
    for point, factor in zip(result.curve, factors, strict=True):
        if point.best_s is not None:
            before_s = result.tasks[point.task].latency_before_s or np.inf
            now = min(before_s, point.best_s * factor) * weights[point.task]
            total += now - known[point.task]
            known[point.task] = now
        sums.append(total)
    return np.array(sums)


def _spread(run: FoundRun) -> tuple[list[float], list[float]]:
    """The fastest and the slowest repeat of each trial's task's best program, to its median."""
    same = [1.0] * len(run.result.curve)
    counted = run.trials.filter(pl.col("origin") != str(Origin.CHECKED))
    if len(counted) != len(same):
        return same, same
    middle = pl.col("run_secs").list.median()
    ratios = counted.with_columns(
        low=pl.when("is_better").then(pl.col("run_secs").list.min() / middle),
        high=pl.when("is_better").then(pl.col("run_secs").list.max() / middle),
    ).with_columns(pl.col("low", "high").forward_fill().over("workload_id").fill_null(1.0))
    return ratios["low"].to_list(), ratios["high"].to_list()


def draw_curve(folder: Path) -> Path:
    """Write the curves of a run's networks as PNG pictures into its folder; return the first."""
    run = find_run(folder)
    figures = [network_figure(run, network, "trials") for network in run.result.networks]
    figures += [sum_figure(run, network.network, "trials") for network in run.result.untimed]
    files = []
    for number, figure in enumerate(figures):
        files.append(folder / ("curve.png" if number == 0 else f"curve-{number + 1}.png"))
        save_figure(figure, files[-1], dpi=200)
    return files[0]


def both_ways(name: str, title: str, draw: Callable[[By], Figure]) -> Choice:
    """Return a curve by trials and by seconds, to choose from; its pictures begin with ``name``."""
    return Choice(
        [(f"by {by}", Picture(f"{name}-{by}", f"{title} by {by}", draw(by))) for by in get_args(By)]
    )


def network_figure(run: FoundRun, network: NetworkResult, by: By) -> Figure:
    """Draw a network's curve beside PyTorch's latency, in one state of the machine.

    Programs are measured corrected to a reference state; networks are timed as the machine is. The
    curve is brought to the state of the latter: it ends at what the tuned network took.
    """
    curve = curve_of(run, network.network)
    end_s = float(curve.latency_s[-1])
    if end_s > 0:
        curve = curve.times(network.latency_after_s / end_s)
    curve.latency_s[0] = network.latency_before_s
    lines = {"tuned network": network.latency_after_s}
    if network.pytorch_latency_s is not None:
        lines["PyTorch"] = network.pytorch_latency_s
    lines |= {one.title: one.latency_s for one in network.engines if one.latency_s is not None}
    return curve_figure(network.network, curve, lines, by, run.unit, network.spread_s)


def sum_figure(run: FoundRun, network: str, by: By) -> Figure:
    """Draw the curve of a network that was not yet timed as a whole."""
    return curve_figure(network, curve_of(run, network), {}, by, run.unit, {})


_COLOURS = {
    "tuned network": "tab:green",
    "PyTorch": "tab:orange",
    "torch.compile": "tab:brown",
    "torch.compile, max-autotune": "tab:pink",
    "ONNX Runtime": "tab:red",
    "OpenVINO": "tab:purple",
}


def curve_figure(
    title: str,
    curve: Curve,
    lines: dict[str, float],
    by: By,
    unit: Unit,
    spread_s: dict[str, tuple[float, float]],
) -> Figure:
    """Draw a curve, its spread, and levels to compare it with.

    Parameters
    ----------
    lines
        Seconds of each level, by what it is called.
    by
        What is spent, along the horizontal axis.
    spread_s
        Fastest and slowest turn of ``"tuned"`` and of each other level.
    """
    figure, axes = panel(2.1)
    places = curve.trials if by == "trials" else curve.seconds
    factor = unit.per_second
    low, high = curve.low_s * factor, curve.high_s * factor
    (line,) = axes.step(
        places, curve.latency_s * factor, where="post", label="best programs so far"
    )
    tip(line, f"from {unit.text(curve.latency_s[0])} to {unit.text(curve.latency_s[-1])}")
    if (high > low).any():
        band: dict[str, Any] = {"alpha": 0.25, "lw": 0, "label": "fastest to slowest repeat"}
        axes.fill_between(places, low, high, step="post", **band)
    for name, level_s in lines.items():
        colour = _COLOURS.get(name)
        level = axes.axhline(level_s * factor, color=colour, ls="--", lw=1.2, label=name)
        tip(level, f"{name}: {unit.text(level_s)}")
        bounds = spread_s.get(name.removesuffix(" network"))
        if bounds is not None:
            axes.axhspan(bounds[0] * factor, bounds[1] * factor, color=colour, alpha=0.15, lw=0)
    levels = [float(curve.latency_s.min()), *lines.values()]
    highest = max(float(curve.high_s.max()), *levels)
    top_s = frame_curves(axes, levels, highest, float(places[-1]), by, unit)
    if curve.latency_s[0] > top_s:
        text = f"untuned: {unit.text(curve.latency_s[0])} ↑"
        place: dict[str, Any] = {"ha": "right", "va": "top", "transform": axes.transAxes}
        axes.text(0.98, 0.97, text, fontsize=8, **place)
    finish(axes, title)
    return figure


def frame_curves(
    axes: Axes, levels: Sequence[float], highest: float, last: float, by: By, unit: Unit
) -> float:
    """Show the part of curves that counts, and say what the axes are.

    Parameters
    ----------
    levels, highest
        Seconds that curves come down to or are compared with, and where they come from.
    last
        Where the longest one ends.

    Returns
    -------
    float
        Seconds at the upper edge.
    """
    lowest = min(levels)
    top_s = min(max(_SHOWN * lowest, 1.25 * max(levels)), 1.05 * highest) or 1.0
    floor_s = max(0.0, lowest - 0.25 * (top_s - lowest))
    axes.set(ylim=(floor_s * unit.per_second, top_s * unit.per_second), xlim=(0, max(last, 1.0)))
    axes.set_ylabel(f"latency ({unit.name})")
    axes.set_xlabel("trials" if by == "trials" else "seconds of tuning")
    (whole_ticks if by == "trials" else plain_ticks)(axes.xaxis)
    plain_ticks(axes.yaxis)
    return top_s
