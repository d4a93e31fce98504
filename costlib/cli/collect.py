"""``costlib collect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.options import Cores, Mcpu, Seed, local_hardware
from costlib.cli.output import Json, print_json, progress_bar

if TYPE_CHECKING:
    from costlib.data.collect import CollectProgress


def collect(
    sources: Annotated[
        list[str],
        typer.Argument(help="Networks, operators (quoted) or files, as for `costlib tasks`."),
    ],
    out: Annotated[Path, typer.Option(help="The dataset's folder; made if it does not exist.")],
    programs: Annotated[int, typer.Option(help="Programs of each task.")] = 64,
    seed: Seed = 0,
    mcpu: Mcpu = None,
    cores: Cores = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare each program's output with the unscheduled.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure programs on this machine into a dataset; called again, it goes on.

    Example: `costlib collect resnet_18 "matmul 384 768 3072" --out my-data --programs 32`
    """
    from costlib.data.card import write_card
    from costlib.data.collect import collect as run
    from costlib.data.summary import summarize
    from costlib.measure.config import MeasureConfig
    from costlib.workloads import extract_tasks

    hardware = local_hardware(mcpu, cores)
    tasks = [task for source in sources for task in extract_tasks(source, hardware)]
    with progress_bar("collecting") as (bar, line):

        def show(progress: CollectProgress) -> None:
            failed = f", {progress.failed} failed" if progress.failed else ""
            description = f"{progress.task}{failed}"
            bar.update(line, completed=progress.done, total=progress.total, description=description)

        dataset = run(
            tasks,
            out,
            programs_per_task=programs,
            hardware=hardware,
            seed=seed,
            config=MeasureConfig(check_output=check),
            on_progress=show,
        )
    write_card(dataset)
    summary = summarize(dataset)
    if as_json:
        print_json(summary.model_dump(mode="json"))
    else:
        typer.echo(f"{out}: {summary.measurements} measurements of {summary.tasks} tasks")
