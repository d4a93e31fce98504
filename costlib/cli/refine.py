"""``costlib refine``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.collect import check_at_least_one, plan_of
from costlib.cli.options import Cores, Key, Mcpu, Seed, Target, TrackerAddress, chosen_fleet
from costlib.cli.output import Json, print_result, progress_bar

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
    from costlib.collecting.refine import refine as run
    from costlib.hub import load_pretrained

    plan = plan_of(sources, programs, seed, target, mcpu, cores)
    check_at_least_one("--epochs", epochs)
    with chosen_fleet(tracker, key) as fleet, progress_bar("refining") as bar:

        def show(progress: RefineProgress) -> None:
            bar(
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
    done = bundle.manifest.metrics["refined_rounds"]
    print_result(
        {"bundle": bundle.path, "rounds": done}, as_json, f"{out}: refined in {done} rounds"
    )
