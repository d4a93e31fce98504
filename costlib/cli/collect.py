"""``costlib collect`` and ``costlib refine``: measuring into a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.options import (
    Cores,
    Key,
    LayoutsOption,
    Mcpu,
    Minutes,
    Seed,
    Target,
    TrackerAddress,
    chosen_fleet,
    chosen_hardware,
    chosen_layouts,
)
from costlib.cli.output import Json, print_result
from costlib.cli.progress import progress_bar
from costlib.errors import InputError

if TYPE_CHECKING:
    from costlib.collecting.plan import CollectionPlan
    from costlib.collecting.planned import PlanProgress
    from costlib.collecting.refine import RefineProgress

_SOURCES = typer.Argument(help="Networks, operators (quoted) or files, as for `costlib tasks`.")


def collect(
    out: Annotated[Path, typer.Option(help="The dataset's folder; made if it does not exist.")],
    sources: Annotated[list[str] | None, _SOURCES] = None,
    plan: Annotated[
        Path | None, typer.Option(help="A TOML file that says what to collect, instead of SOURCES.")
    ] = None,
    programs: Annotated[int, typer.Option(help="Programs of each task.")] = 64,
    layouts: LayoutsOption = "channels-last",
    minutes: Minutes = None,
    seed: Seed = 0,
    target: Target = "cpu",
    mcpu: Mcpu = None,
    cores: Cores = None,
    tracker: TrackerAddress = None,
    key: Key = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare each program's output with the unscheduled.")
    ] = False,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="First measure again what failed to build or run earlier; without SOURCES, all "
            "that failed in the dataset, and nothing else.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure programs, here or on a fleet, into a dataset; called again, it goes on.

    Example: `costlib collect resnet_18 "matmul 384 768 3072" --out my-data --programs 32`

    Example: `costlib collect --plan plan.toml --out my-data --minutes 60`

    Example: `costlib collect --retry-failed --out my-data`
    """
    from costlib.measure.limits import check_address_space

    check_address_space()
    from costlib.collecting.plan import load_plan
    from costlib.collecting.planned import collect_plan, retry_all_failed
    from costlib.data.card import write_card
    from costlib.data.summary import summarize
    from costlib.measure.config import MeasureConfig

    if sources and plan is not None:
        raise InputError("name either networks and operators to collect from, or a --plan")
    if not sources and plan is None and not retry_failed:
        raise InputError("name networks and operators to collect from, or give a --plan")
    config = MeasureConfig(check_output=check)
    with chosen_fleet(tracker, key) as fleet, progress_bar("collecting") as bar:

        def show(progress: PlanProgress) -> None:
            step = f"{progress.step}/{progress.steps} " if progress.steps > 1 else ""
            bar(
                completed=progress.done,
                total=progress.total,
                description=f"{step}{progress.what} {progress.task}",
            )

        if sources or plan is not None:
            wanted = (
                _plan_of(sources or (), programs, seed, target, mcpu, cores, layouts)
                if plan is None
                else load_plan(plan)
            )
            if minutes is not None:
                wanted = wanted.model_copy(update={"minutes": minutes})
            dataset = collect_plan(
                wanted,
                out,
                retry_failed=retry_failed,
                config=config,
                fleet=fleet,
                on_progress=show,
            )
        else:
            dataset = retry_all_failed(
                out,
                fleet.hardware() if fleet else [chosen_hardware(target, mcpu, cores)],
                minutes=minutes,
                config=config,
                fleet=fleet,
                on_progress=show,
            )
    held_out = dataset.held_out()
    for written in (dataset, held_out):
        if written is not None:
            write_card(written)
    summary = summarize(dataset)
    text = f"{out}: {summary.measurements} measurements of {summary.tasks} tasks"
    print_result(summary, as_json, text)


def refine(
    sources: Annotated[list[str], _SOURCES],
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

    plan = _plan_of(sources, programs, seed, target, mcpu, cores)
    _check_at_least_one("--epochs", epochs)
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


def _plan_of(
    sources: Sequence[str],
    programs: int,
    seed: int,
    target: str,
    mcpu: str | None,
    cores: int | None,
    layouts: str = "channels-last",
) -> CollectionPlan:
    """Make a plan of the options."""
    from costlib.collecting.plan import CollectionPlan, HardwarePlan

    _check_at_least_one("--programs", programs)
    return CollectionPlan(
        sources=tuple(sources),
        programs_per_task=programs,
        min_flops=0,
        layouts=chosen_layouts(layouts),
        seed=seed,
        hardware=(HardwarePlan(target=target, mcpu=mcpu, cores=cores),),
    )


def _check_at_least_one(option: str, value: int) -> None:
    """Refuse an option's number if it is below 1."""
    if value < 1:
        raise InputError(f"{option} is {value}; it must be at least 1")
