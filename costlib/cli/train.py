"""``costlib train`` and ``costlib evaluate``."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costlib.cli.options import Events, Seed, event_file
from costlib.cli.output import Json, print_json, print_table
from costlib.cli.progress import progress_bar

if TYPE_CHECKING:
    from costlib.report.page import Page


def train(
    dataset: Annotated[str, typer.Argument(help="The dataset's folder or address.")],
    out: Annotated[Path, typer.Option(help="The bundle's folder.")],
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Fine-tune this bundle instead: its models are kept where that gains nothing.",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="The kind of model.")] = "gbdt",
    hardware: Annotated[
        list[str] | None, typer.Option(help="Id of a hardware to train for; all if not given.")
    ] = None,
    held_out: Annotated[
        float | None,
        typer.Option(
            help="Share of the tasks to judge on, instead of the dataset's held-out networks."
        ),
    ] = None,
    generator_epochs: Annotated[
        int | None, typer.Option(help="Train a generator as well, for so many epochs (slow).")
    ] = None,
    generator_width: Annotated[
        int, typer.Option(help="Width of a new one, a multiple of 32; half is four times as fast.")
    ] = 192,
    generator_from: Annotated[
        str | None,
        typer.Option(help="A bundle whose generator is trained further, instead of a new one."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Train on a Dask cluster: `tcp://host:port`, or `local:N` processes."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Take the place of a bundle that is there already.")
    ] = False,
    tensorboard: Events = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a cost model on a dataset and save it as a bundle.

    Example: `costlib train my-data --out my-bundle`

    Example: `costlib train my-data --from cpu-gbdt --out my-bundle`
    """
    from costlib.errors import InputError
    from costlib.generator.transformer import GeneratorConfig
    from costlib.hub.train import train as run
    from costlib.models.training_curve import following, listening
    from costlib.report.events import JUDGED

    if generator_from is not None and generator_epochs is None:
        raise InputError("--generator-from is given: say with --generator-epochs how long to train")
    if start is not None and (model, generator_from, cluster) != ("gbdt", None, None):
        raise InputError(
            "--from goes on with a bundle's own models, here; "
            "leave --model, --generator-from and --cluster out"
        )
    generator = None
    if generator_epochs is not None and start is None:
        if generator_width < 32 or generator_width % 32:
            raise InputError(f"--generator-width is {generator_width}; give a multiple of 32")
        generator = GeneratorConfig(epochs=generator_epochs, width=generator_width)
    with event_file(tensorboard) as events, progress_bar("training") as bar:
        if events is not None:
            names = {"dataset": dataset, "model": model}
            events.settings({**names, "seed": seed}, [f"judged/{name}" for name in JUDGED])

        def follow(what: str, done: int, total: int) -> None:
            bar(description=what, completed=done, total=total)

        with nullcontext() if events is None else listening(events.tell), following(follow):
            read = partial(follow, "reading programs")
            if start is None:
                bundle = run(
                    dataset,
                    out,
                    kind=model,
                    hardware=hardware,
                    held_out_share=held_out,
                    seed=seed,
                    generator=generator,
                    generator_from=generator_from,
                    cluster=cluster,
                    replace=replace,
                    on_progress=read,
                )
            else:
                from costlib.hub.fine_tuning import fine_tune

                bundle = fine_tune(
                    dataset,
                    out,
                    start=start,
                    hardware=hardware,
                    held_out_share=held_out,
                    seed=seed,
                    generator_epochs=generator_epochs,
                    replace=replace,
                    on_progress=read,
                )
        if events is not None:
            events.metrics(bundle.manifest.metrics)
    if start is None:
        _print_metrics(str(out), bundle.manifest.metrics, as_json)
    else:
        from costlib.cli.fine_tuned import print_fine_tuned

        print_fine_tuned(bundle, as_json)


def evaluate(
    bundle: Annotated[str, typer.Argument(help="A bundle's name or folder.")],
    on: Annotated[
        str | None,
        typer.Option(help="A dataset's folder or address: judge anew on what it holds."),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option(help="Id of the hardware to judge held-out networks on.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Judge on all tasks, not only those kept out of training.")
    ] = False,
    page: Annotated[
        Path | None, typer.Option(help="Also write a page: where it is right, and where wrong.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how well a bundle ranks what it was not trained on, or judge it anew on a dataset.

    Example: `costlib evaluate cpu-gbdt`

    Example: `costlib evaluate cpu-gbdt --on my-data --page cpu-gbdt.html`
    """
    from costlib.errors import InputError
    from costlib.hub import load_pretrained
    from costlib.places import check_writable

    if page is not None:
        check_writable(page)
    loaded = load_pretrained(bundle)
    if on is None:
        if hardware is not None or everything:
            raise InputError("--hardware and --all choose from a dataset; name it with --on")
        trained_on = loaded.manifest.trained_on
        what = (
            f"{len(trained_on.held_out)} tasks kept out of its training on "
            f"'{trained_on.dataset}', when it was made"
        )
        if page is not None:
            from costlib.report.bundle import bundle_report

            _save(bundle_report(loaded), page)
        _print_metrics(bundle, loaded.manifest.metrics | {"judged_on": what}, as_json)
        return
    from costlib.data.dataset import Dataset
    from costlib.hub.evaluate import examine, judged_on

    dataset = Dataset.open(on)
    judged = judged_on(loaded, dataset, hardware_id=hardware, everything=everything)
    found = examine(loaded, dataset, hardware_id=hardware, everything=everything)
    if page is not None:
        from costlib.report.evaluation import evaluation_report

        _save(evaluation_report(loaded, found, judged), page)
    _print_metrics(bundle, found.metrics.model_dump() | {"judged_on": str(judged)}, as_json)


def _save(page: Page, file: Path) -> None:
    from costlib.report.page import save_page

    save_page(page, file)
    typer.echo(f"written: {file}", err=True)


def _print_metrics(title: str, metrics: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(metrics)
        return
    parts = {"": metrics, **metrics.get("networks", {})}
    if "pooled" in metrics:
        parts["pooled"] = metrics["pooled"]
    for part, figures in parts.items():
        rows = [
            (name, f"{value:.4f}" if isinstance(value, float) else value, _interval(figures, name))
            for name, value in figures.items()
            if isinstance(value, (int, float))
        ]
        columns = ["metric", ">value", "with 95 % confidence"]
        print_table(f"{title} {part}".strip(), columns, rows)
    if "judged_on" in metrics:
        typer.echo(f"judged on {metrics['judged_on']}")
    if left := metrics.get("not_judged"):
        typer.echo(f"not judged, as some of their tasks were not measured: {', '.join(left)}")


def _interval(figures: dict[str, Any], name: str) -> str:
    bounds = figures.get(f"{name}_interval")
    return f"{bounds[0]:.4f} to {bounds[1]:.4f}" if bounds else ""
