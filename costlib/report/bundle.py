"""The report of a bundle."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from costlib.hub.bundle import Bundle
from costlib.report.figures import legend_below, panels
from costlib.report.page import Page, Picture, Section, Table

_FIGURES = ("top1", "top5", "top10", "pairwise_accuracy", "rank_correlation")
_NAMES = ("top-1", "top-5", "top-10", "pairs in order", "rank correlation")


def bundle_report(bundle: Bundle) -> Page:
    """Describe a bundle: what it was trained on and how well it ranks what it has not seen."""
    manifest, metrics = bundle.manifest, bundle.manifest.metrics
    data = manifest.trained_on
    parts = {"all": metrics, **metrics.get("networks", {})}
    models = {manifest.model_kind: metrics}
    if "draft" in metrics:
        models[f"{manifest.draft_kind}, a first look"] = metrics["draft"]
    ranking = Picture("ranking", "top-1 and top-5 of each network", _ranking_figure(parts))
    sections = [
        Section(
            "How well it ranks",
            f"Judged on {len(data.held_out)} tasks that it was not trained on. Top-k is the "
            "share of a task's best throughput that the best of the first k programs reaches. "
            "In brackets: where it lies with 95 % confidence, were other tasks drawn.",
            [_figures("model", models), ranking, _figures("network", parts)],
        )
    ]
    if metrics.get("calibration", {}).get("expected"):
        figure = _calibration_figure(metrics["calibration"])
        text = (
            "Of two programs of a task, the one with the higher score should be the faster one as "
            "often as the distance of their scores says; each point is a tenth of all pairs."
        )
        picture = Picture("calibration", "Expected and observed share of right pairs", figure)
        sections.append(Section("How sure it may be", text, [picture]))
    if metrics.get("curves"):
        picture = Picture("learning", "How the models learnt", _curves_figure(metrics["curves"]))
        text = (
            "Ranking figures are of tasks that were not trained on, after so many trees; losses "
            "are of what is learnt from, after so many steps."
        )
        sections.append(Section("How it learnt", text, [picture]))
    if "directions" in metrics:
        rows = [[k.replace("_", " "), _text(v)] for k, v in metrics["directions"].items()]
        text = "Which change of a program pays most, against MetaSchedule's fixed probabilities."
        sections.append(Section("Mutation directions", text, [Table(("figure", ">value"), rows)]))
    if bundle.priors is not None:
        text = f"The best known programs to start from: {len(bundle.priors):,}."
        sections.append(Section("Prior bank", text))
    known = [entry.hardware for entry in manifest.hardware]
    hardware = [(one.hardware_id, one.model, one.num_cores, one.vector_bits) for one in known]
    columns = ("hardware", "model", ">cores", ">vector bits")
    files = Table(("file", "SHA-256"), list(manifest.files.items()))
    text = "Each is checked against its hash whenever the bundle is loaded."
    sections.append(Section("Hardware", parts=[Table(columns, hardware)]))
    sections.append(Section("Files", text, [files]))
    return Page(
        title=f"Bundle {manifest.name}",
        text=f"Made with: {manifest.command}",
        facts=[
            ("model", manifest.model_kind),
            ("programs", f"{data.programs:,}"),
            ("tasks", f"{data.tasks:,}"),
            ("dataset", data.dataset),
            ("features", manifest.feature_version),
            ("made", manifest.created[:10]),
        ],
        sections=sections,
    )


def _figures(what: str, judged: dict[str, dict[str, Any]]) -> Table:
    columns = (what, ">tasks", *(f">{name}" for name in _NAMES))
    rows = [
        [name, m.get("tasks"), *(_with_interval(m, figure) for figure in _FIGURES)]
        for name, m in judged.items()
    ]
    return Table(columns, rows)


def _with_interval(metrics: dict[str, Any], figure: str) -> str:
    text = _text(metrics.get(figure))
    interval = metrics.get(f"{figure}_interval")
    return f"{text} ({_text(interval[0])} to {_text(interval[1])})" if interval else text


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return "-" if value is None else str(value)


def _ranking_figure(parts: dict[str, dict[str, Any]]) -> Figure:
    """Draw top-1 and top-5 beside what a random choice reaches."""
    figure, both = panels(2, 2, 4, 0.9 + 0.5 * len(parts), sharey=True)
    for axes, name, title in zip(both, _FIGURES[:2], _NAMES[:2], strict=True):
        places = range(len(parts))
        axes.barh(places, [part[name] for part in parts.values()], label="model")
        random = [part[f"random_{name}"] for part in parts.values()]
        axes.plot(random, places, "|", ms=14, mew=2, color="tab:orange", label="random choice")
        axes.set_yticks(places, list(parts))
        axes.set(title=title, xlim=(0, 1))
    both[0].invert_yaxis()
    legend_below(figure, 2)
    return figure


def _calibration_figure(calibration: dict[str, Any]) -> Figure:
    figure, (axes,) = panels(1, 1, 4.5, 4)
    axes.plot([0.5, 1], [0.5, 1], "--", color="tab:gray", lw=1, label="as sure as right")
    axes.plot(calibration["expected"], calibration["observed"], "o-", label="model")
    axes.set(xlabel="expected share of right pairs", ylabel="observed", xlim=(0.48, 1.02))
    axes.legend(frameon=False)
    return figure


def _curves_figure(curves: dict[str, list[tuple[int, float]]]) -> Figure:
    """Draw each curve in a panel of its own."""
    figure, each = panels(len(curves), 2, 4, 2.2)
    for axes, (name, points) in zip(each, sorted(curves.items()), strict=True):
        axes.plot(*zip(*points, strict=True), marker="." if len(points) < 20 else "")
        axes.set_title(name.replace("_", " "))
    return figure
