"""The page of a bundle, from what is noted in it."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from costlib.hub.bundle import Bundle
from costlib.report.figures import finish, panel, plain_ticks, tip
from costlib.report.importance import importance_section
from costlib.report.page import Gallery, Page, Part, Picture, Section, Sentence, Table
from costlib.report.ranking import (
    EXPLAINED,
    calibration_figure,
    figure_text,
    ranking_figure,
    ranking_table,
)
from costlib.report.units import counted, plain


def bundle_report(bundle: Bundle) -> Page:
    """Describe a bundle: what it was trained on and how well it ranks what it has not seen."""
    manifest, metrics = bundle.manifest, bundle.manifest.metrics
    data = manifest.trained_on
    sections = [
        _ranking(bundle),
        calibration_section(metrics.get("calibration", {})),
        importance_section(bundle.model),
        _learning(metrics.get("curves", {})),
    ]
    if "directions" in metrics:
        rows = [[k.replace("_", " "), figure_text(v)] for k, v in metrics["directions"].items()]
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
        sections=[section for section in sections if section is not None],
        verdict=ranking_sentences(metrics),
    )


def ranking_sentences(metrics: dict[str, Any]) -> list[Sentence]:
    """Say how good a model's first choices are, against random ones, and how sure that is."""
    if "top1" not in metrics:
        return [["It was not judged when it was made."]]
    bounds = metrics.get("top1_interval")
    sure = f" ({figure_text(bounds[0])} to {figure_text(bounds[1])})" if bounds else ""
    sentences: list[Sentence] = [
        [
            f"The program that it ranks first reaches {figure_text(metrics['top1'])}{sure} of the "
            f"best throughput; a random one reaches {figure_text(metrics['random_top1'])}."
        ],
        [
            f"The best of its first five reaches {figure_text(metrics['top5'])}; of five random "
            f"ones, {figure_text(metrics['random_top5'])}."
        ],
        [
            f"It puts {100 * metrics['pairwise_accuracy']:.0f} % of the pairs of a task's programs "
            f"in order; guessing, 50 %. It was judged on {counted(metrics['tasks'], 'task')} with "
            f"{counted(metrics['programs'], 'program')}."
        ],
    ]
    networks = {name: one["top1"] for name, one in metrics.get("networks", {}).items()}
    if len(networks) > 1:
        worst, *_, best = sorted(networks, key=networks.__getitem__)
        sentences.append(
            [
                f"It is best at {best} ({figure_text(networks[best])}) and worst at {worst} "
                f"({figure_text(networks[worst])})."
            ]
        )
    return sentences


def _ranking(bundle: Bundle) -> Section:
    manifest, metrics = bundle.manifest, bundle.manifest.metrics
    models = {manifest.model_kind: metrics}
    if "draft" in metrics:
        models[f"{manifest.draft_kind}, a first look"] = metrics["draft"]
    held_out = counted(len(manifest.trained_on.held_out), "task")
    text = f"Judged on {held_out} that it was not trained on. {EXPLAINED}"
    parts = [ranking_table("model", models), *ranking_parts(metrics)]
    return Section("How well it ranks", text, parts)


def ranking_parts(metrics: dict[str, Any]) -> list[Part]:
    """Return the pictures and the table of a model's figures, network by network."""
    parts = {"all": metrics, **metrics.get("networks", {})}
    table = ranking_table("network", parts)
    if len(parts) == 1 or "random_top1" not in metrics:
        return [table]
    pictures = [
        Picture(f"ranking-top{k}", f"top-{k} of each network", ranking_figure(parts, k))
        for k in (1, 5)
    ]
    return [Gallery(pictures), table]


def calibration_section(calibration: dict[str, Any]) -> Section | None:
    """Say whether a model is as sure as it is right; ``None`` where that is not known."""
    expected, observed = calibration.get("expected", ()), calibration.get("observed", ())
    if not expected:
        return None
    text = (
        "Of two programs of a task, the one with the higher score should be the faster one as "
        "often as the distance of their scores says; each point is a tenth of all pairs."
    )
    if len(expected) == 1:
        text += f" Expected: {plain(expected[0])}; right: {plain(observed[0])}."
        return Section("How sure it may be", text)
    figure = calibration_figure(list(expected), list(observed))
    picture = Picture("calibration", "Expected and observed share of right pairs", figure)
    return Section("How sure it may be", text, [picture])


def _learning(curves: dict[str, list[tuple[int, float]]]) -> Section | None:
    if not curves:
        return None
    text = (
        "Ranking figures are of tasks that were not trained on, after so many trees; losses are of "
        "what is learnt from, after so many steps."
    )
    pictures = [
        Picture(f"learning-{number}", f"{name} by steps", _curve_figure(name, curves[name]))
        for number, name in enumerate(sorted(curves), start=1)
        if len(curves[name]) > 1
    ]
    rows = [[_named(name), plain(float(curves[name][-1][1]))] for name in sorted(curves)]
    parts: list[Part] = [Gallery(pictures)] if pictures else []
    return Section("How it learnt", text, [*parts, Table(("figure", ">in the end"), rows)])


def _named(curve: str) -> str:
    return curve.replace("_", " ")


def _curve_figure(name: str, points: list[tuple[int, float]]) -> Figure:
    figure, axes = panel(1.6)
    steps, values = zip(*points, strict=True)
    (line,) = axes.plot(steps, values, "o-", ms=2.5, lw=1)
    tip(line, *(f"{step:,}: {plain(float(value))}" for step, value in points))
    axes.set(xlabel="steps")
    plain_ticks(axes.xaxis, axes.yaxis)
    finish(axes, _named(name))
    return figure
