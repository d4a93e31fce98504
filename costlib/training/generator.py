"""A dataset's programs as sequences, and a generator trained on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError
from costlib.features.language import VOCABULARY, Grammar, prompt
from costlib.features.programs import programs_by_task
from costlib.features.version import LANGUAGE_VERSION
from costlib.hardware import Hardware
from costlib.models import training_curve
from costlib.models.generator import Generator
from costlib.models.transformer import GeneratorConfig
from costlib.schema import Language
from costlib.space.program import Program, Sketch
from costlib.space.vectors import DecisionVectors
from costlib.training.batches import chosen_hardware

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True)
class Sentences:
    """`n` programs written down.

    Attributes
    ----------
    tokens
        int64, an array for each.
    chosen
        bool, as long: which tokens the writer chose.
    labels
        float64 `n`: how good each is, NaN where that is not known.
    """

    tokens: list[Integers]
    chosen: list[Bools]
    labels: np.ndarray[Any, np.dtype[np.float64]]


def write_down(
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    random_programs: int = 0,
    seed: int = 0,
) -> Sentences:
    """Write down the programs of a dataset that ran, and some random ones of their sketches.

    Parameters
    ----------
    dataset
        The dataset.
    only, hardware
        See :func:`costlib.training.batches.batches`.
    random_programs
        How many of each sketch of each task; they show what can be written.
    seed
        Of the random programs.

    Raises
    ------
    DatasetError
        There is no such program.
    """
    tokens: list[Integers] = []
    chosen: list[Bools] = []
    labels: list[float] = []
    rng = np.random.default_rng(seed)
    for task, machine, sketch, programs, known in _families(dataset, only, hardware):
        try:
            vectors = DecisionVectors(sketch, programs)
            grammar = Grammar(vectors)
        except (InputError, AssertionError):  # A sketch that another TVM made.
            continue
        rows = vectors.encode(programs)
        written = (rows >= 0).all(1)
        random = vectors.random(random_programs, rng)
        body = grammar.encode(np.concatenate([rows[written], random]))
        of_body = [not isinstance(entry, int) for entry in grammar.layout]
        values = [*known[written], *[None] * len(random)]
        for row, label in zip(body, values, strict=True):
            header = prompt(task["name"], task["flops"] or 0.0, machine, sketch, label)
            tokens.append(np.concatenate([np.array(header), row]))
            chosen.append(np.array([False] * len(header) + of_body))
            labels.append(np.nan if label is None else float(label))
    if not tokens:
        raise DatasetError(f"{dataset.path} has no program that can be written down")
    return Sentences(tokens, chosen, np.array(labels))


def fit_generator(
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    config: GeneratorConfig | None = None,
    start: Generator | None = None,
    seed: int = 0,
    checkpoints: Path | None = None,
    on_progress: Callable[[int, int, float], None] | None = None,
) -> Generator:
    """Train a generator on random programs, then on all that were measured.

    Good programs and bad ones are learnt from alike, each told apart by its quality token.

    Parameters
    ----------
    dataset, only, hardware
        See :func:`write_down`.
    config
        Its size and training; of ``start``, if that is given, the training alone.
    start
        A generator to go on from, which was trained before: there is no pretraining then.
    seed
        Of weights and order.
    checkpoints
        A folder for what a training that is killed goes on from.
    on_progress
        Called with (step, steps, loss) after each step of either part.
    """
    config = config or GeneratorConfig()
    random_programs = 0 if start or not config.pretrain_epochs else config.random_programs
    sentences = write_down(
        dataset, only=only, hardware=hardware, random_programs=random_programs, seed=seed
    )
    model = start or Generator(VOCABULARY, LANGUAGE_VERSION, config, seed)
    measured = ~np.isnan(sentences.labels)
    parts = [
        ("pretraining", ~measured, config.pretrain_epochs),
        ("training", measured, config.epochs),
    ]
    for name, rows, epochs in parts:

        def note(step: int, steps: int, loss: float, part: str = name) -> None:
            training_curve.tell(f"generator/{part} loss", step, loss)
            if on_progress is not None:
                on_progress(step, steps, loss)

        chosen = np.flatnonzero(rows)
        if len(chosen) and epochs:
            model.fit(
                [sentences.tokens[i] for i in chosen],
                [sentences.chosen[i] for i in chosen],
                seed=seed,
                epochs=epochs,
                checkpoint=checkpoints and checkpoints / f"{name}.safetensors",
                on_progress=note,
            )
    return model


def _families(
    dataset: Dataset, only: Collection[str] | None, hardware: Collection[str] | None
) -> Iterator[tuple[dict[str, Any], Hardware, Sketch, list[Program], Any]]:
    """Yield a task, hardware, sketch, the programs measured of it, and their labels."""
    workloads = dataset.scan("workloads").select("workload_id", "name", "flops").collect()
    described = {row["workload_id"]: row for row in workloads.iter_rows(named=True)}
    sketches = dict(
        dataset.scan("sketches")
        .filter(language=str(Language.METASCHEDULE))
        .select("sketch_id", "instructions")
        .collect()
        .iter_rows()
    )
    columns = (
        pl.col("sketch_id").first(),
        pl.col("decisions").first(),
        pl.col("latency_s").median(),
    )
    for hardware_id, machine in chosen_hardware(dataset, hardware).items():
        for workload_id, rows in programs_by_task(dataset, hardware_id, *columns, only=only):
            labelled = rows.with_columns(label=pl.col("latency_s").min() / pl.col("latency_s"))
            for (sketch_id,), group in labelled.group_by("sketch_id", maintain_order=True):
                if sketch_id not in sketches:
                    continue
                programs = [
                    Program(workload_id, str(sketch_id), json.loads(text))
                    for text in group["decisions"]
                ]
                sketch = Sketch.from_json(sketches[sketch_id])
                label = group["label"].to_numpy()
                yield described[workload_id], machine, sketch, programs, label
