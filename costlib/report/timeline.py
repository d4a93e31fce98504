"""A network's kernels in time: what runs when, how long, and how much longer than as tuned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from costlib.report.figures import finish, panel, plain_ticks, save_figure, tip
from costlib.report.units import Unit, unit_for
from costlib.tuning.profile import KernelProfile, NetworkProfile

_MOST_ROWS = 8
"""A network's time is cut into so many pieces at most, one below the other."""

_KERNELS = 5
"""Of a row, at least."""

_ROW_HEIGHT = 0.3
"""Inches."""

_LETTER = 0.022
"""Share of a row that a letter takes; a kernel is named where its name fits."""

_TUNED, _SLOWER, _UNKNOWN = "C0", "C3", "tab:gray"
_LEGEND = {
    _TUNED: "as long as when tuned",
    _SLOWER: "longer than that",
    _UNKNOWN: "not tuned",
}
_OPACITY = 0.55
"""Text on a bar can be read, light and dark."""


def draw_timelines(profiles: Sequence[NetworkProfile], path: Path) -> Path:
    """Write :func:`timeline_figure` of each network; of all but the first, beside ``path``."""
    for number, profile in enumerate(profiles, start=1):
        file = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        save_figure(timeline_figure(profile, unit_for([profile.network_s])), file, dpi=200)
    return path


def timeline_figure(profile: NetworkProfile, unit: Unit) -> Figure:
    """Draw a network's kernels as bars in time, from the first to the last."""
    total_s = sum(kernel.latency_s for kernel in profile.kernels)
    rows = min(_MOST_ROWS, 1 + len(profile.kernels) // _KERNELS)
    figure, axes = panel(0.1 + _ROW_HEIGHT * rows)
    row = _Rows(axes, rows, total_s / rows, unit)
    begin_s = 0.0
    for kernel in profile.kernels:
        row.draw(begin_s, kernel)
        begin_s += kernel.latency_s
    axes.set(xlim=(0, row.row_s * unit.per_second), ylim=(rows - 0.5, -0.5), yticks=[])
    axes.set_xlabel(f"{unit.name}, row after row" if rows > 1 else unit.name)
    axes.spines["left"].set_visible(False)
    plain_ticks(axes.xaxis)
    finish(axes, f"{profile.network}: {unit.text(profile.network_s)} a call")
    return figure


class _Rows:
    """Rows that a bar goes on in where one is full."""

    def __init__(self, axes: Axes, rows: int, row_s: float, unit: Unit) -> None:
        self.row_s = row_s
        self._explained: set[str] = set()
        self._axes = axes
        self._rows = rows
        self._unit = unit

    def draw(self, begin_s: float, kernel: KernelProfile) -> None:
        """Draw a kernel, as long as it took when it was tuned and beyond that."""
        unit, tuned_s = self._unit, kernel.tuned_s
        text = f"{kernel.name}: {unit.text(kernel.latency_s)}"
        if tuned_s is None:
            self._bar(begin_s, kernel.latency_s, _UNKNOWN, f"{text}, not tuned")
        else:
            text += f", {unit.text(tuned_s)} as tuned"
            self._bar(begin_s, min(tuned_s, kernel.latency_s), _TUNED, text)
            self._bar(begin_s + tuned_s, kernel.latency_s - tuned_s, _SLOWER, text)
        self._name(begin_s, kernel)

    def _bar(self, begin_s: float, secs: float, colour: str, text: str) -> None:
        for row in range(self._rows):
            row_begin_s = row * self.row_s
            left_s = max(begin_s, row_begin_s)
            part_s = min(begin_s + secs, row_begin_s + self.row_s) - left_s
            if part_s > 0:
                place = (left_s - row_begin_s) * self._unit.per_second
                label = "" if colour in self._explained else _LEGEND[colour]
                self._explained.add(colour)
                style: dict[str, Any] = {"color": colour, "alpha": _OPACITY, "label": label}
                (bar,) = self._axes.barh(row, part_s * self._unit.per_second, 0.86, place, **style)
                tip(bar, text)

    def _name(self, begin_s: float, kernel: KernelProfile) -> None:
        row, start_s = divmod(begin_s, self.row_s)
        operator = kernel.name.partition(" ")[0]
        shown_s = min(kernel.latency_s, self.row_s - start_s)
        edge = start_s * self._unit.per_second
        if start_s > 0:
            self._axes.plot([edge, edge], [row - 0.43, row + 0.43], color="black", lw=0.6)
        if shown_s > _LETTER * (len(operator) + 1) * self.row_s:
            middle = (start_s + shown_s / 2) * self._unit.per_second
            self._axes.text(
                middle, row, operator, ha="center", va="center", fontsize=7, parse_math=False
            )
