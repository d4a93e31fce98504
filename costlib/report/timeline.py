"""A network's kernels in time: what runs when, how long, and how much longer than as tuned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from costlib.report.figures import save_figure
from costlib.tuning.profile import NetworkProfile

_MOST_ROWS = 4
"""A network's time is cut into so many pieces at most, one below the other."""

_KERNELS = 8
"""Of a row, at least."""

_CHARACTER = 0.008
"""Share of a row that a letter takes; a kernel is named where its name fits."""

_TUNED, _SLOWER, _UNKNOWN = "tab:blue", "tab:red", "tab:gray"
_LEGEND = {
    _TUNED: "as long as when it was tuned",
    _SLOWER: "longer than that",
    _UNKNOWN: "not tuned",
}


def draw_timelines(profiles: Sequence[NetworkProfile], path: Path) -> Path:
    """Write :func:`timeline_figure` as a picture."""
    save_figure(timeline_figure(profiles), path, dpi=150)
    return path


def timeline_figure(profiles: Sequence[NetworkProfile]) -> Figure:
    """Draw the kernels of each network as bars in time, from the first to the last."""
    count = len(profiles)
    figure = Figure(figsize=(10, 3.6 * count), layout="constrained")
    for axes, profile in zip(figure.subplots(count, squeeze=False)[:, 0], profiles, strict=True):
        _draw(axes, profile)
    handles = [Patch(color=color, label=label) for color, label in _LEGEND.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)
    return figure


def _draw(axes: Axes, profile: NetworkProfile) -> None:
    total_s = sum(kernel.latency_s for kernel in profile.kernels)
    rows = min(_MOST_ROWS, 1 + len(profile.kernels) // _KERNELS)
    row_s = total_s / rows
    begin_s = 0.0
    for kernel in profile.kernels:
        tuned_s = kernel.latency_s if kernel.tuned_s is None else kernel.tuned_s
        color = _UNKNOWN if kernel.tuned_s is None else _TUNED
        _bar(axes, begin_s, min(tuned_s, kernel.latency_s), rows, row_s, color)
        _bar(axes, begin_s + tuned_s, kernel.latency_s - tuned_s, rows, row_s, _SLOWER)
        row, start_s = divmod(begin_s, row_s)
        operator = kernel.name.partition(" ")[0]
        shown_s = min(kernel.latency_s, row_s - start_s)
        if shown_s > _CHARACTER * len(operator) * row_s:
            middle_ms = (start_s + shown_s / 2) * 1e3
            axes.text(middle_ms, row, operator, ha="center", va="center", fontsize=7, color="white")
        begin_s += kernel.latency_s
    axes.set_title(f"{profile.network}: {profile.network_s * 1e3:.3g} ms a call", fontsize=9)
    axes.set(xlim=(0, row_s * 1e3), ylim=(rows - 0.5, -0.5), xlabel="ms, row after row")
    axes.set_yticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)


def _bar(axes: Axes, begin_s: float, secs: float, rows: int, row_s: float, color: str) -> None:
    """Draw a bar, which may go on in the next rows."""
    for row in range(rows):
        row_begin_s = row * row_s
        left_s = max(begin_s, row_begin_s)
        part_s = min(begin_s + secs, row_begin_s + row_s) - left_s
        if part_s > 0:
            style: dict[str, Any] = {"color": color, "edgecolor": "white", "linewidth": 1}
            axes.barh(row, part_s * 1e3, 0.86, (left_s - row_begin_s) * 1e3, **style)
