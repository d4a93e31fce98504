"""``costlib adapt``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.options import (
    Cores,
    Key,
    Mcpu,
    Seed,
    Target,
    TrackerAddress,
    chosen_fleet,
    chosen_hardware,
)
from costlib.cli.output import Json, print_json, print_table
from costlib.cli.progress import progress_bar

if TYPE_CHECKING:
    from costlib.collecting.adapt import AdaptProgress
    from costlib.collecting.adapted import Adapted, CurvePoint
    from costlib.training.metrics import Metrics


def adapt(
    out: Annotated[Path, typer.Option(help="The new bundle's folder; `OUT-data` has the data.")],
    minutes: Annotated[
        float, typer.Option(help="How long to measure and teach, all calls together.")
    ] = 15,
    pretrained: Annotated[
        str, typer.Option(help="The bundle to start from: a name, a folder, or an address.")
    ] = "cpu-gbdt",
    seed: Seed = 0,
    target: Target = "cpu",
    mcpu: Mcpu = None,
    cores: Cores = None,
    tracker: TrackerAddress = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Teach a bundle this machine: measure what teaches it most; called again, it goes on.

    Example: `costlib adapt --minutes 15 --out my-machine`
    """
    from costlib.measure.limits import check_address_space

    check_address_space()
    from costlib.cli.fine_tuned import fine_tuned_values, print_fine_tuned
    from costlib.collecting.adapt import adapt as run
    from costlib.collecting.adapt import data_of
    from costlib.collecting.adapted import adapted_of

    with chosen_fleet(tracker, key) as fleet, progress_bar("adapting") as bar:

        def show(progress: AdaptProgress) -> None:
            text = f"{progress.programs} programs, about {progress.expected} in the end: "
            bar(
                completed=int(progress.spent_s),
                total=int(progress.total_s),
                description=text + progress.what,
            )

        bundle = run(
            out,
            minutes=minutes,
            bundle=pretrained,
            hardware=None if fleet else chosen_hardware(target, mcpu, cores),
            seed=seed,
            fleet=fleet,
            on_progress=show,
        )
    adapted = adapted_of(bundle)
    assert adapted is not None
    if as_json:
        values = fine_tuned_values(bundle) | adapted.model_dump(mode="json")
        print_json(values | {"data": str(data_of(out))})
        return
    _print_curve(adapted)
    print_fine_tuned(bundle, as_json=False)


def _print_curve(adapted: Adapted) -> None:
    from costlib.report.units import counted

    def figures(point: CurvePoint) -> list[str]:
        return [
            _text(metrics, name)
            for metrics in (point.model, point.draft)
            for name in ("top1", "top5")
        ]

    rows = [
        (f"{point.minutes:.1f}", point.programs, point.tasks, *figures(point))
        for point in adapted.curve
    ]
    columns = [">minutes", ">programs", ">tasks", ">top1", ">top5", ">draft top1", ">draft top5"]
    tasks = counted(adapted.apart, "task")
    print_table(f"quality by minutes, on {tasks} kept apart", columns, rows)


def _text(metrics: Metrics | None, name: str) -> str:
    return "-" if metrics is None else f"{getattr(metrics, name):.3f}"
