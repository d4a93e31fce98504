"""How a fine-tuned bundle compares with the one it started from, printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from costlib.cli.output import print_json, print_table

if TYPE_CHECKING:
    from costlib.hub.bundle import Bundle
    from costlib.training.fine_tuning import Comparison
    from costlib.training.metrics import Metrics


def fine_tuned_values(bundle: Bundle) -> dict[str, Any]:
    """Return what is printed for machines: the metrics, ``before``, ``after``, ``kept``."""
    from costlib.hub.fine_tuning import fine_tuning_of

    tuning = fine_tuning_of(bundle)
    assert tuning is not None
    return bundle.manifest.metrics | {
        "bundle": str(bundle.path),
        "before": tuning.model.before,
        "after": tuning.model.after,
        "kept": tuning.kept,
    }


def print_fine_tuned(bundle: Bundle, as_json: bool) -> None:
    """Print the models before and after, and which were kept."""
    from costlib.hub.fine_tuning import fine_tuning_of
    from costlib.report.units import counted

    if as_json:
        print_json(fine_tuned_values(bundle))
        return
    tuning = fine_tuning_of(bundle)
    assert tuning is not None
    models = {"cost model": tuning.model, "model of schedules": tuning.draft}
    rows = [
        (title, name, _text(one.before, name), _text(one.after, name), _kept(one))
        for title, one in models.items()
        if one is not None
        for name in ("top1", "top5", "pairwise_accuracy")
    ]
    columns = ["model", "metric", ">before", ">after", "kept"]
    print_table(f"{bundle.path}, from {tuning.bundle}", columns, rows)
    how = "not learnt from" if tuning.judged == "apart" else "each by a model that had not seen it"
    typer.echo(
        f"judged on {counted(tuning.model.before.tasks, 'task')}, {how}, of "
        f"{', '.join(tuning.hardware)}; learnt from {counted(tuning.programs, 'program')} of "
        f"{counted(tuning.tasks, 'task')}; {counted(tuning.priors, 'program')} joined the prior "
        "bank"
    )


def _kept(one: Comparison) -> str:
    return f"{one.kept}: {one.way}" if one.kept == "fine-tuned" else one.kept


def _text(metrics: Metrics, name: str) -> str:
    value = getattr(metrics, name)
    bounds = getattr(metrics, f"{name}_interval", None)
    return f"{value:.3f}" + (f" ({bounds[0]:.3f} to {bounds[1]:.3f})" if bounds else "")
