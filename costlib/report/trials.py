"""The picture of a task's trials."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from costlib.report.figures import (
    finish,
    latency_scale,
    panel,
    tip,
    whole_ticks,
)
from costlib.report.units import Unit
from costlib.schema import Origin


def trials_figure(trials: pl.DataFrame, title: str, unit: Unit) -> Figure | None:
    """Draw a task's trials of :func:`costlib.report.progress.with_progress`, and the best so far.

    ``None`` if fewer than two programs ran: a point alone is no picture.
    """
    ran = trials.drop_nulls("latency_s")
    if len(ran) < 2:
        return None
    figure, axes = panel()
    for number, origin in enumerate(Origin):
        own = ran.filter(pl.col("origin") == str(origin))
        if own.is_empty():
            continue
        latency = own["latency_s"].to_numpy() * unit.per_second
        colour = f"C{number}"
        (points,) = axes.plot(
            own["trial"].to_numpy(), latency, "o", ms=4, color=colour, label=str(origin)
        )
        texts = [
            f"trial {trial}, {origin}: {unit.text(latency_s)}"
            for trial, latency_s in own.select("trial", "latency_s").iter_rows()
        ]
        tip(points, *texts)
    known = trials.drop_nulls("best_s")
    best = known["best_s"].to_numpy() * unit.per_second
    (line,) = axes.step(known["trial"].to_numpy(), best, where="post", label="best so far")
    line.set(color="tab:gray", lw=1.2, zorder=1)
    tip(line, f"best: {unit.text(known['best_s'][-1])}")
    values = ran["latency_s"].to_numpy() * unit.per_second
    latency_scale(axes, [float(values.min()), float(values.max())])
    whole_ticks(axes.xaxis)
    axes.set(xlabel="trial of this task", ylabel=f"latency ({unit.name})")
    finish(axes, title, 3)
    return figure
