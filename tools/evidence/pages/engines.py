"""Tuned networks beside the engines that people have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from matplotlib.figure import Figure

from tools.evidence.beside_engines import ENGINES, OURS, BesideEngines, means
from tools.evidence.files import read_result
from tools.evidence.markdown import between, in_words, percent, pictures, table, times
from tools.evidence.marks import Mark, marks_figure
from tools.evidence.means import geometric_mean
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page, Pictures
from tools.evidence.provenance import machine, measured

_BESIDE_TASKS = 0.1
_TICKS = (0.25, 0.5, 1, 2, 4, 8)
_COMPARED = (
    "Networks of the zoo, and of `transformers` outside it, are tuned in all layouts with the "
    "shipped bundle. Then each runs beside PyTorch, `torch.compile`, ONNX Runtime "
    "and OpenVINO: float32, the same threads, the hint for latency, "
    "in turns until those of each agree. `torch.compile` with max-autotune has its weights frozen. "
    "Where `torch.compile` is slower than PyTorch without it, that counts. "
    "An engine that cannot load a network, or computes something else than PyTorch, has no latency."
)


def parts() -> list[str]:
    """Return the page."""
    result = read_result("engines")
    rows = _rows()
    versions = [f"{name} {version}" for name, version in result["versions"].items()]
    return [
        pictures(dict.fromkeys(_pictures(), "how much faster than other engines each network is")),
        f"{_COMPARED} Versions: {in_words(versions)}.",
        "## All networks and machines",
        "How many times as fast the tuned networks are, and how many of them are slower. "
        + _beside_tasks(rows),
        origin("engines"),
        table(
            ["against", "networks", "geometric mean", "range", "slower"],
            [
                *(
                    _summary(title, [row.ratio(engine) for row in rows])
                    for engine, title in ENGINES.items()
                    if any(row.ratio(engine) for row in rows)
                ),
                _summary("the fastest of them", [row.ratio_to_best for row in rows]),
            ],
        ),
        *(part for setting in _settings(rows) for part in _networks(rows, setting)),
        *_problems(rows),
        *measured("engines"),
    ]


def _beside_tasks(rows: Sequence[BesideEngines]) -> str:
    """Say how much a network takes beside its tasks; our goal is 10 %."""
    found = [row.ratio_to_tasks for row in rows if row.ratio_to_tasks is not None]
    if not found:
        return ""
    near = sum(ratio <= 1 + _BESIDE_TASKS for ratio in found)
    return (
        f"In the geometric mean a network takes {times(geometric_mean(found))} what its kernels "
        f"took when they were tuned; {near} of {len(found)} are within "
        f"{percent(_BESIDE_TASKS)}, as is our goal."
    )


def _rows() -> list[BesideEngines]:
    return [BesideEngines.model_validate(row) for row in read_result("engines").get("networks", [])]


class _Setting(NamedTuple):
    """What the networks of a table have in common."""

    batch: int
    threads: int
    hardware: str

    @classmethod
    def of(cls, row: BesideEngines) -> _Setting:
        return cls(row.batch, row.threads, row.hardware)

    def __str__(self) -> str:
        threads = "thread" if self.threads == 1 else "threads"
        return f"batch {self.batch}, {self.threads} {threads}, {machine(self.hardware)}"

    @property
    def picture(self) -> str:
        name = re.sub(r"\W+", "-", machine(self.hardware)).lower()
        return f"engines-{name}-b{self.batch}-t{self.threads}.svg"


def _settings(rows: Sequence[BesideEngines]) -> list[_Setting]:
    """Return all that there are, one sample on most threads first."""
    found = {_Setting.of(row) for row in rows}
    return sorted(found, key=lambda one: (one.batch, -one.threads, machine(one.hardware)))


def _summary(title: str, found: Sequence[float | None]) -> list[str | int]:
    ratios = [ratio for ratio in found if ratio is not None]
    return [
        title,
        len(ratios),
        times(geometric_mean(ratios)) if ratios else "",
        between(min(ratios), max(ratios)) if ratios else "",
        sum(ratio < 1 for ratio in ratios),
    ]


def _networks(rows: Sequence[BesideEngines], setting: _Setting) -> list[str]:
    some = [row for row in rows if _Setting.of(row) == setting]
    mean = [f"{times(ratio)} of {ENGINES[engine]}" for engine, ratio in means(some).items()]
    return [
        f"## {str(setting)[:1].upper()}{str(setting)[1:]}",
        f"Geometric means: {in_words(mean)}. Latencies are in milliseconds; a question mark: the "
        "turns did not agree. *Of its tasks* is what the network takes by what its kernels took "
        "together when they were tuned, and *dispatch* the share of time between kernels; both are "
        "by `costlib profile`. *Difference* is the largest between our output and PyTorch's.",
        origin("engines", hardware=setting.hardware),
        table(
            [
                *("network", "trials", "seconds of tuning", "costlib", *ENGINES.values()),
                *("of its tasks", "dispatch", "difference"),
            ],
            [
                [
                    f"`{row.name}`",
                    row.trials,
                    round(row.tune_s),
                    *(_latency(row, engine) for engine in (OURS, *ENGINES)),
                    "" if row.ratio_to_tasks is None else f"{row.ratio_to_tasks:.2f}",
                    "" if row.dispatch_share is None else percent(row.dispatch_share, 1),
                    f"{row.agreement[OURS]:.1e}" if OURS in row.agreement else "",
                ]
                for row in some
            ],
        ),
    ]


def _latency(row: BesideEngines, engine: str) -> str:
    seconds = row.seconds(engine)
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.3g}" + "?" * (engine in row.doubtful)


def _problems(rows: Sequence[BesideEngines]) -> list[str]:
    titles = {OURS: OURS, **ENGINES}
    lines = [
        [f"`{row.name}`, {_Setting.of(row)}", titles[engine], problem]
        for row in rows
        for engine, problem in row.problems.items()
    ]
    if not lines:
        return []
    head = ["network", "engine", "why"]
    words = "Engines without a latency, and what they say."
    return ["## What did not run", words, origin("engines"), table(head, lines)]


def _pictures() -> Pictures:
    rows = _rows()
    return {
        setting.picture: partial(_drawn, rows, setting)
        for setting in _settings(rows)
        if any(row.ratio(engine) for row in rows for engine in ENGINES)
    }


def _drawn(rows: Sequence[BesideEngines], setting: _Setting) -> Figure:
    some = [row for row in rows if _Setting.of(row) == setting]
    found = {row.name: [_mark(row.ratio(engine)) for engine in ENGINES] for row in some}
    kinds = list(ENGINES.values())
    title = f"Times as fast, {setting}"
    return marks_figure(title, found, kinds, "times as fast", ticks=_TICKS, compared=1)


def _mark(ratio: float | None) -> Mark | None:
    return None if ratio is None else Mark(ratio, ratio, ratio)


PAGE = Page("engines", "Tuned networks against other engines", parts, ("engines",), _pictures)
