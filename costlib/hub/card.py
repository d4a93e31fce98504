"""The model card of a bundle, with Hugging Face's front matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costlib.hub.manifest import Manifest


def model_card(manifest: Manifest) -> str:
    """Write the card of a bundle."""
    hardware = "\n".join(
        f"- `{e.hardware.hardware_id}` ({e.hardware.model})" for e in manifest.hardware
    )
    data = manifest.trained_on
    return f"""---
license: apache-2.0
library_name: costlib
tags: [costlib, tvm, cost-model, autotuning]
---

# {manifest.name}

A `{manifest.model_kind}` cost model for Apache TVM programs, features `{manifest.feature_version}`,
made by costlib {manifest.costlib_version} with

    {manifest.command}

Trained on {data.programs} programs of {data.tasks} tasks (dataset `{data.dataset}`), measured on

{hardware}

{_judged(manifest)}
{_figures(manifest.metrics)}
Scores rank programs of one task on one hardware; they are not latencies. On hardware that is
not listed, expect the ranking to be worse.
"""


def _judged(manifest: Manifest) -> str:
    """Say what it was judged on, and what it was before if it was fine-tuned."""
    tuning = manifest.metrics.get("fine_tuned")
    if tuning is None:
        return f"Judged on {len(manifest.trained_on.held_out)} tasks that it was not trained on:\n"
    titles = {"model": "cost model", "draft": "model of schedules"}
    rows = [
        [title, figure, *(_with_interval(one[when], figure) for when in ("before", "after")),
         _kept(one)]
        for part, title in titles.items()
        if (one := tuning[part]) is not None
        for figure in ("top1", "top5")
    ]  # fmt: skip
    columns = ["model", "metric", "before", "after", "kept"]
    judged = tuning["model"]["before"]["tasks"]
    how = (
        "that it did not learn from"
        if tuning["judged"] == "apart"
        else "in turn, each by a model that did not learn from it"
    )
    return f"""Fine-tuned from `{tuning["bundle"]}` (revision `{tuning["revision"]}`)
with {tuning["programs"]} programs of {tuning["tasks"]} tasks (dataset `{tuning["dataset"]}`)
of {", ".join(f"`{one}`" for one in tuning["hardware"])}. Each model is kept as it was unless it
got better. Judged on {judged} tasks of that hardware, {how}:

{_table(columns, rows)}{_curve(manifest.metrics)}
What it is now:
"""


def _curve(metrics: dict[str, Any]) -> str:
    """Quality by minutes, if it was adapted to a machine."""
    adapted = metrics.get("adapted")
    if adapted is None:
        return ""
    columns = ["minutes", "programs", "tasks", "top1", "top5", "draft top1", "draft top5"]
    rows = [
        [f"{point['minutes']:.1f}", point["programs"], point["tasks"],
         *(point[part] and point[part][figure] for part in ("model", "draft")
           for figure in ("top1", "top5"))]
        for point in adapted["curve"]
    ]  # fmt: skip
    doubt = adapted["doubt"] and f"\n{adapted['doubt'].capitalize()}.\n"
    return f"\nQuality by minutes of measuring and teaching:\n\n{_table(columns, rows)}{doubt}"


def _kept(one: dict[str, Any]) -> str:
    return f"{one['kept']}: {one['way']}" if one["kept"] == "fine-tuned" else str(one["kept"])


def _with_interval(metrics: dict[str, Any], name: str) -> str:
    return f"{_text(metrics[name])} ({_text(metrics[f'{name}_interval'])})"


def _figures(metrics: dict[str, Any]) -> str:
    """The metrics as tables: what holds for all, and a column for each network."""
    text = _column(metrics)
    networks = metrics.get("networks", {})
    if networks:
        columns = {**networks, "pooled": metrics["pooled"]}
        names = list(metrics["pooled"])
        rows = [[name, *(one[name] for one in columns.values())] for name in names]
        text += "\n" + _table(["metric", *columns], rows)
    if left := metrics.get("not_judged"):
        text += f"\nNot judged, as some of their tasks were not measured: {', '.join(left)}.\n"
    for part, title in (("draft", "The model of schedules"), ("directions", "Mutation directions")):
        if part in metrics:
            text += f"\n{title}:\n\n{_column(metrics[part])}"
    return text


def _column(metrics: dict[str, Any]) -> str:
    """Those metrics that hold for all."""
    rows = [
        [name, value]
        for name, value in metrics.items()
        if not isinstance(value, dict) and name != "not_judged"
    ]
    return _table(["metric", "value"], rows)


def _table(columns: list[str], rows: list[list[Any]]) -> str:
    cells = [[_text(cell) for cell in row] for row in rows]
    lines = [columns, ["---"] * len(columns), *cells]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _text(cell: Any) -> str:
    if isinstance(cell, (list, tuple)):
        return " to ".join(map(_text, cell))
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)
