"""Tuned networks beside the engines that people have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from tools.evidence.beside_engines import ENGINES, OURS, BesideEngines, means
from tools.evidence.drawing import NOTHING_GAINED, panels
from tools.evidence.files import read_result
from tools.evidence.markdown import between, in_words, picture, table, times
from tools.evidence.means import geometric_mean
from tools.evidence.pages.page import Page
from tools.evidence.provenance import measured, provenance

_PICTURE = "engines.svg"
_COMPARED = (
    "Each network of the zoo, and ten of `transformers` that are not in it, is tuned in all "
    "layouts with the shipped bundle. Then it runs beside PyTorch, `torch.compile`, ONNX Runtime "
    "and OpenVINO: float32, the same threads, the hint for latency, "
    "in turns until those of each agree. `torch.compile` with max-autotune has its weights frozen. "
    "An engine that cannot load a network, or computes something else than PyTorch, has no latency."
)


def parts() -> list[str]:
    """Return the page."""
    result = read_result("engines")
    rows = _rows()
    if not rows:
        return [_COMPARED, "Nothing has been measured yet."]
    versions = [f"{name} {version}" for name, version in result["versions"].items()]
    return [
        picture(_PICTURE, "how much faster than other engines each network is"),
        f"{_COMPARED} Versions: {in_words(versions)}.",
        "## All networks",
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
        *(part for settings in _settings(rows) for part in _networks(rows, *settings)),
        *_problems(rows),
        *(measured("engines") if "engines" in provenance().benchmarks else []),
    ]


def _rows() -> list[BesideEngines]:
    return [BesideEngines.model_validate(row) for row in read_result("engines").get("networks", [])]


def _settings(rows: Sequence[BesideEngines]) -> list[tuple[int, int]]:
    """Return each batch and number of threads that there is, one sample on most threads first."""
    return sorted({(row.batch, row.threads) for row in rows}, key=lambda one: (one[0], -one[1]))


def _in_words(batch: int, threads: int) -> str:
    return f"batch {batch}, {threads} {'thread' if threads == 1 else 'threads'}"


def _summary(title: str, found: Sequence[float | None]) -> list[str | int]:
    ratios = [ratio for ratio in found if ratio is not None]
    return [
        title,
        len(ratios),
        times(geometric_mean(ratios)) if ratios else "",
        between(min(ratios), max(ratios)) if ratios else "",
        sum(ratio < 1 for ratio in ratios),
    ]


def _networks(rows: Sequence[BesideEngines], batch: int, threads: int) -> list[str]:
    some = [row for row in rows if (row.batch, row.threads) == (batch, threads)]
    mean = [f"{times(ratio)} of {ENGINES[engine]}" for engine, ratio in means(some).items()]
    return [
        f"## {_in_words(batch, threads).capitalize()}",
        f"Geometric means: {in_words(mean)}. Latencies are in milliseconds; a question mark: the "
        "turns did not agree. *Difference* is the largest between our output and PyTorch's.",
        table(
            ["network", "trials", "seconds of tuning", "costlib", *ENGINES.values(), "difference"],
            [
                [
                    f"`{row.name}`",
                    row.trials,
                    round(row.tune_s),
                    *(_latency(row, engine) for engine in (OURS, *ENGINES)),
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
        [f"`{row.name}`, {_in_words(row.batch, row.threads)}", titles[engine], problem]
        for row in rows
        for engine, problem in row.problems.items()
    ]
    return ["## What did not run", table(["network", "engine", "why"], lines)] if lines else []


def _drawn() -> Figure:
    rows = _rows()
    settings = _settings(rows)
    names = sorted({row.name for row in rows}, reverse=True)
    size = (3.4, 0.2 * len(names) + 1.3)
    figure, panels_of = panels(len(settings), 1, size, sharey=True, sharex=True)
    for panel, (batch, threads) in zip(panels_of, settings, strict=True):
        some = {row.name: row for row in rows if (row.batch, row.threads) == (batch, threads)}
        for number, (engine, title) in enumerate(ENGINES.items()):
            ratios = [some[name].ratio(engine) if name in some else None for name in names]
            places = [np.nan if ratio is None else ratio for ratio in ratios]
            panel.plot(places, range(len(names)), "o", color=f"C{number}", label=title)
        panel.axvline(1, **NOTHING_GAINED)
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_yticks(range(len(names)), names)
        panel.set_ylim(-0.7, len(names) - 0.3)
        panel.grid(axis="y", lw=0.3)
        panel.set(xlabel="times as fast", title=_in_words(batch, threads))
    handles, labels = panels_of[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


PAGE = Page(
    "engines",
    "Tuned networks against other engines",
    parts,
    {_PICTURE: _drawn} if _rows() else {},
)
