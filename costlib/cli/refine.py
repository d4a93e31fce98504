"""``costlib refine``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.options import Cores, Key, Mcpu, Seed, Target, TrackerAddress, chosen_fleet
from costlib.cli.output import Json, print_json, progress_bar

if TYPE_CHECKING:
    from costlib.collecting.refine import RefineProgress


def refine(
    sources: Annotated[
        list[str],
        typer.Argument(help="Networks, operators (quoted) or files, as for `costlib tasks`."),
    ],
    out: Annotated[Path, typer.Option(help="The refined bundle's folder.")],
    data: Annotated[Path, typer.Option(help="A dataset of its own for what is measured.")],
    pretrained: Annotated[
        str, typer.Option(help="A bundle with a generator: a name, a folder, or an address.")
    ] = "cpu-gbdt",
    rounds: Annotated[int, typer.Option(help="How often to write, measure and learn.")] = 3,
    programs: Annotated[int, typer.Option(help="Programs of each task in a round.")] = 16,
    epochs: Annotated[int, typer.Option(help="Passes over all that was measured, a round.")] = 1,
    seed: Seed = 0,
    target: Target = "cpu",
    mcpu: Mcpu = None,
    cores: Cores = None,
    tracker: TrackerAddress = None,
    key: Key = None,
    as_json: Json = False,
) -> None:
    """Let a bundle's generator write programs, measure them and learn; called again, it goes on.

    Example: `costlib refine resnet_18 --data written --out refined --rounds 3`
    """
    from costlib.collecting.plan import CollectionPlan, HardwarePlan
    from costlib.collecting.refine import refine as run
    from costlib.errors import InputError
    from costlib.hub import load_pretrained

    for name, value in (("--programs", programs), ("--epochs", epochs)):
        if value < 1:
            raise InputError(f"{name} is {value}; it must be at least 1")
    plan = CollectionPlan(
        sources=tuple(sources),
        programs_per_task=programs,
        min_flops=0,
        seed=seed,
        hardware=(HardwarePlan(target=target, mcpu=mcpu, cores=cores),),
    )
    with chosen_fleet(tracker, key) as fleet, progress_bar("refining") as (bar, line):

        def show(progress: RefineProgress) -> None:
            bar.update(
                line,
                completed=progress.done,
                total=progress.total,
                description=f"{progress.number}/{progress.rounds} {progress.what}",
            )

        bundle = run(
            load_pretrained(pretrained),
            plan,
            data,
            out,
            rounds=rounds,
            epochs=epochs,
            fleet=fleet,
            on_progress=show,
        )
    if as_json:
        print_json(
            {"bundle": str(bundle.path), "rounds": bundle.manifest.metrics["refined_rounds"]}
        )
    else:
        typer.echo(f"{out}: refined in {bundle.manifest.metrics['refined_rounds']} rounds")
