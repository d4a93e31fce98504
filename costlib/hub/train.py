"""A dataset in, a pretrained bundle out."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.generator.fit import fit_generator, fit_generator_in_ranks
from costlib.generator.transformer import GeneratorConfig
from costlib.hub.bundle import Bundle, check_place, save_bundle
from costlib.hub.catalog import load_pretrained
from costlib.hub.collect_priors import collect_priors
from costlib.hub.manifest import HardwareEntry, TrainedOn
from costlib.models.training_curve import recording
from costlib.training.batches import chosen_hardware
from costlib.training.cluster import connected
from costlib.training.directions import fit_directions
from costlib.training.fit import fit_model

_DRAFT = "gbdt-schedules"
"""Kind of the model that takes a first look at candidates."""


def train(
    dataset: Dataset | str | Path,
    out: str | Path,
    *,
    kind: str = "gbdt",
    hardware: Collection[str] | None = None,
    held_out_share: float | None = None,
    seed: int = 0,
    generator: GeneratorConfig | None = None,
    generator_from: str | Path | None = None,
    cluster: str | None = None,
    replace: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Bundle:
    """Train a cost model, and what else a search makes use of, and save them as a bundle.

    Beside the model: a model of schedules, a classifier of mutation directions if the dataset
    has mutation records, and the best programs as a prior bank.

    Parameters
    ----------
    dataset
        A dataset, its folder or its address.
    out
        The bundle's folder.
    kind, hardware, held_out_share, seed
        See :func:`costlib.training.fit.fit_model`.
    generator
        Train a generator like this, too. Killed, it goes on from checkpoints beside ``out``.
    generator_from
        A bundle whose generator is trained further, instead of a new one.
    cluster
        Train the cost models and the generator on the workers of a Dask scheduler,
        ``tcp://host:port``, or on ``local:N`` processes; they must see the dataset at the same
        place.
    replace
        Let the bundle take the place of another one at ``out``, in one step at the end.
    on_progress
        Called with (done, total): programs while features are computed, then the tasks that a
        generator learns from, then its steps.

    Raises
    ------
    BundleError
        Something is at ``out`` already.
    DatasetError
        The dataset is incomplete, or damaged.
    StorageError
        ``out`` cannot be written.
    """
    check_place(Path(out), replace=replace)
    source = dataset.path if isinstance(dataset, Dataset) else dataset
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
    check_complete(dataset)
    writer = None
    checkpoints = Path(out).with_name(f".{Path(out).name}-training")
    with recording() as curves, nullcontext() if cluster is None else connected(cluster) as client:
        fitted, draft = (
            fit_model(
                dataset,
                kind=one,
                hardware=hardware,
                held_out_share=held_out_share,
                seed=seed,
                cluster=client,
                on_progress=on_progress,
            )
            for one in (kind, _DRAFT)
        )
        if generator is not None:
            fit_writer = (
                partial(
                    fit_generator,
                    checkpoints=checkpoints,
                    on_progress=on_progress,
                )
                if client is None
                else partial(fit_generator_in_ranks, client)
            )
            writer = fit_writer(
                dataset,
                only=fitted.trained,
                hardware=hardware,
                config=generator,
                start=load_pretrained(generator_from).require_generator()
                if generator_from
                else None,
                teacher=draft.model,
                seed=seed,
            )
    metrics = fitted.metrics.model_dump() | {
        "near_duplicates_removed": fitted.removed,
        "calibration": fitted.calibration.model_dump(),
        "draft": draft.metrics.model_dump(),
    }
    directions = fit_directions(dataset, hardware=hardware, only=draft.trained, seed=seed)
    if directions is not None:
        metrics["directions"] = directions[1].model_dump()
    command = ["costlib", "train", str(source), "--out", str(out), "--model", kind]
    if held_out_share is not None:
        command += ["--held-out", str(held_out_share)]
    for hardware_id in hardware or ():
        command += ["--hardware", hardware_id]
    if generator is not None:
        command += ["--generator-epochs", str(generator.epochs)]
        if generator_from is not None:
            command += ["--generator-from", str(generator_from)]
        else:
            command += ["--generator-width", str(generator.width)]
    if cluster is not None:
        command += ["--cluster", cluster]
    command += ["--seed", str(seed)]
    known = chosen_hardware(dataset, hardware)
    bundle = save_bundle(
        out,
        fitted.model,
        draft=draft.model,
        directions=None if directions is None else directions[0],
        priors=collect_priors(dataset, only=set(fitted.trained), hardware=known),
        generator=writer,
        command=shlex.join(command),
        seed=seed,
        hardware=tuple(
            HardwareEntry(hardware=one, canary=dataset.canary(hardware_id))
            for hardware_id, one in known.items()
        ),
        trained_on=TrainedOn(
            dataset=dataset.path.name,
            tasks=len(fitted.trained),
            programs=fitted.programs,
            trained=fitted.trained,
            held_out=fitted.held_out,
        ),
        metrics=metrics | {"curves": curves},
        replace=replace,
    )
    shutil.rmtree(checkpoints, ignore_errors=True)
    return bundle
