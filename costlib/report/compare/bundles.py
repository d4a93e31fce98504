"""Bundles beside one another."""

from __future__ import annotations

from collections.abc import Sequence

from costlib.hub.bundle import Bundle
from costlib.report.page import Gallery, Part, Picture, Section, Sentence, Table
from costlib.report.ranking import EXPLAINED, figure_text, ranking_figure, ranking_table

_BARS = 16
"""Bundles with a bar of their own, the best ones."""


def _ranked(bundles: Sequence[Bundle]) -> list[Bundle]:
    """Bundles by their top-1, those that were not judged last."""
    return sorted(bundles, key=lambda one: -one.manifest.metrics.get("top1", -1.0))


def _comparable(bundles: Sequence[Bundle]) -> bool:
    return len({one.manifest.trained_on.held_out for one in bundles}) == 1


def bundle_verdict(bundles: Sequence[Bundle]) -> list[Sentence]:
    """Say which bundle ranks best, if they were judged on the same."""
    judged = [one for one in _ranked(bundles) if "top1" in one.manifest.metrics]
    if len(judged) < 2:
        return [["Fewer than two bundles were judged when they were made."]]
    best, second = judged[:2]
    figures = [one.manifest.metrics["top1"] for one in (best, second)]
    sentences: list[Sentence] = [
        [
            f"{best.name} ranks best: its first choice reaches {figure_text(figures[0])} of the "
            f"best throughput, that of {second.name} {figure_text(figures[1])}."
        ]
    ]
    if not all("top1_interval" in one.manifest.metrics for one in (best, second)):
        sentences.append(["How sure that is was not noted; a small lead may be chance."])
    low = best.manifest.metrics.get("top1_interval", (0.0,))[0]
    high = second.manifest.metrics.get("top1_interval", (0.0,))[-1]
    if 0 < low <= high:
        sentences.append(["Their intervals overlap: on other tasks it may be the other way round."])
    if not _comparable(judged):
        sentences.append(
            ["They were judged on different tasks; `costlib evaluate --on` judges them alike."]
        )
    return sentences


def bundle_section(bundles: Sequence[Bundle]) -> Section:
    """Return the figures of all bundles."""
    figures = {one.name: one.manifest.metrics for one in _ranked(bundles)}
    judged = {name: one for name, one in figures.items() if "random_top1" in one}
    parts: list[Part] = [ranking_table("bundle", figures)]
    if len(judged) > 1:
        shown = dict(list(judged.items())[:_BARS])
        parts.append(
            Gallery(
                [
                    Picture(f"bundles-top{k}", f"top-{k} of each bundle", ranking_figure(shown, k))
                    for k in (1, 5)
                ]
            )
        )
    rows = [
        [
            one.name,
            one.manifest.model_kind,
            one.manifest.trained_on.dataset,
            f"{one.manifest.trained_on.tasks:,}",
            f"{one.manifest.trained_on.programs:,}",
            ", ".join(entry.hardware.hardware_id for entry in one.manifest.hardware),
        ]
        for one in _ranked(bundles)
    ]
    columns = ("bundle", "model", "trained on", ">tasks", ">programs", "hardware")
    return Section("Bundles", EXPLAINED, [*parts, Table(columns, rows)])
