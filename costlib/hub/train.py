"""A dataset in, a pretrained bundle out."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from costlib.data.dataset import Dataset
from costlib.hub.bundle import Bundle, HardwareEntry, TrainedOn, save_bundle
from costlib.hub.collect_priors import collect_priors
from costlib.training.fit import fit_model


def train(
    dataset: Dataset | str | Path,
    out: str | Path,
    *,
    kind: str = "gbdt",
    held_out_share: float | None = None,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> Bundle:
    """Train a cost model and save it as a bundle, with the best programs as its prior bank.

    Parameters
    ----------
    dataset
        A dataset or its folder.
    out
        The bundle's folder; an existing bundle is replaced.
    kind, held_out_share, seed, on_progress
        See :func:`costlib.training.fit.fit_model`.
    """
    dataset = dataset if isinstance(dataset, Dataset) else Dataset.open(dataset)
    fitted = fit_model(
        dataset, kind=kind, held_out_share=held_out_share, seed=seed, on_progress=on_progress
    )
    command = ["costlib", "train", str(dataset.path), "--out", str(out), "--model", kind]
    if held_out_share is not None:
        command += ["--held-out", str(held_out_share)]
    command += ["--seed", str(seed)]
    hardware = tuple(
        HardwareEntry(hardware=hardware, canary=dataset.canary(hardware_id))
        for hardware_id, hardware in dataset.hardware().items()
    )
    return save_bundle(
        out,
        fitted.model,
        collect_priors(dataset),
        command=shlex.join(command),
        seed=seed,
        hardware=hardware,
        trained_on=TrainedOn(
            dataset=dataset.path.name,
            tasks=len(fitted.trained),
            programs=fitted.programs,
            trained=fitted.trained,
            held_out=fitted.held_out,
        ),
        metrics=fitted.metrics.model_dump() | {"near_duplicates_removed": fitted.removed},
    )
