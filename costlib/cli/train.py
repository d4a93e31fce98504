"""``costlib train`` and ``costlib evaluate``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from costlib.cli.options import Events, Seed, event_file
from costlib.cli.output import Json, print_json, print_table, progress_bar


def train(
    dataset: Annotated[str, typer.Argument(help="The dataset's folder or address.")],
    out: Annotated[Path, typer.Option(help="The bundle's folder.")],
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
    """
    from costlib.errors import InputError
    from costlib.generator.transformer import GeneratorConfig
    from costlib.hub.train import train as run
    from costlib.models.training_curve import listening

    if generator_from is not None and generator_epochs is None:
        raise InputError("--generator-from is given: say with --generator-epochs how long to train")
    generator = None
    if generator_epochs is not None:
        if generator_width < 32 or generator_width % 32:
            raise InputError(f"--generator-width is {generator_width}; give a multiple of 32")
        generator = GeneratorConfig(epochs=generator_epochs, width=generator_width)
    with event_file(tensorboard) as events, progress_bar("training") as bar:
        with nullcontext() if events is None else listening(events.tell):
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
                on_progress=lambda done, total: bar(completed=done, total=total),
            )
        if events is not None:
            events.metrics(bundle.manifest.metrics)
    _print_metrics(str(out), bundle.manifest.metrics, as_json)


def evaluate(
    bundle: Annotated[str, typer.Argument(help="A bundle's name or folder.")],
    dataset: Annotated[
        str | None,
        typer.Argument(
            help="The dataset's folder or address; the one it was trained on, if it is shipped."
        ),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option(help="Id of the hardware to judge held-out networks on.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Judge on all tasks, not only those kept out of training.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Judge a bundle on held-out networks, or on tasks that it was not trained on.

    Example: `costlib evaluate cpu-gbdt`
    """
    from costlib.data.dataset import Dataset
    from costlib.hub import load_pretrained
    from costlib.hub.catalog import find_dataset
    from costlib.hub.evaluate import evaluate as run

    loaded = load_pretrained(bundle)
    folder = dataset or find_dataset(loaded.manifest.trained_on.dataset)
    metrics = run(loaded, Dataset.open(folder), hardware_id=hardware, everything=everything)
    _print_metrics(bundle, metrics.model_dump(), as_json)


def _print_metrics(title: str, metrics: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(metrics)
        return
    parts = {"": metrics, **metrics.get("networks", {})}
    if "pooled" in metrics:
        parts["pooled"] = metrics["pooled"]
    for part, figures in parts.items():
        rows = [
            (name, f"{value:.4f}" if isinstance(value, float) else value)
            for name, value in figures.items()
            if not isinstance(value, dict)
        ]
        print_table(f"{title} {part}".strip(), ["metric", ">value"], rows)
