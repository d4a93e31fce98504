"""A dataset's programs as sequences, and a generator trained on them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
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
from costlib.models.base import CostModel
from costlib.models.generator import Generator
from costlib.models.transformer import GeneratorConfig
from costlib.schema import Language
from costlib.space.program import Program, Sketch
from costlib.space.vectors import DecisionVectors
from costlib.training.batches import chosen_hardware
from costlib.training.imagined import Programs, imagine

Integers = np.ndarray[Any, np.dtype[np.int64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass
class Sentences:
    """Programs written down.

    Attributes
    ----------
    tokens
        int64, an array for each program.
    chosen
        bool, as long: which tokens the writer chose.
    measured
        Whether a program was measured.
    """

    tokens: list[Integers] = field(default_factory=list)
    chosen: list[Bools] = field(default_factory=list)
    measured: list[bool] = field(default_factory=list)


@dataclass(frozen=True)
class _Family:
    """A sketch of a task and its measured programs."""

    vectors: DecisionVectors
    grammar: Grammar
    measured: Programs


def write_down(
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    random_programs: int = 0,
    imagined_programs: int = 0,
    teacher: CostModel | None = None,
    seed: int = 0,
) -> Sentences:
    """Write down the programs of a dataset that ran, and others of their tasks.

    How good a program is, is its share of the best throughput of its task, that of programs that
    were not measured included.

    Parameters
    ----------
    dataset
        The dataset.
    only, hardware
        See :func:`costlib.training.batches.batches`.
    random_programs, imagined_programs, teacher
        How many of each sketch of each task are drawn at random, and how many of each task are
        those that ``teacher``, a model of schedules, thinks best, see
        :func:`costlib.training.imagined.imagine`; none without it.
    seed
        Of the programs that were not measured.

    Raises
    ------
    DatasetError
        There is no such program.
    """
    found = Sentences()
    rng = np.random.default_rng(seed)
    for workload, machine, families in _tasks(dataset, only, hardware):
        programs = {sketch_id: [family.measured] for sketch_id, family in families.items()}
        if teacher is not None:
            imagined = imagine(
                workload,
                machine,
                {sketch_id: family.vectors for sketch_id, family in families.items()},
                {sketch_id: family.measured for sketch_id, family in families.items()},
                teacher,
                imagined_programs,
                random_programs,
                rng,
            )
            for sketch_id, more in imagined.items():
                programs[sketch_id].append(more)
        best_s = min(
            p.latency_s.min() for p in itertools.chain(*programs.values()) if len(p.latency_s)
        )
        for sketch_id, family in families.items():
            rows = np.concatenate([p.vectors for p in programs[sketch_id]])
            labels = best_s / np.concatenate([p.latency_s for p in programs[sketch_id]])
            body = family.grammar.encode(rows)
            of_body = [not isinstance(entry, int) for entry in family.grammar.layout]
            for number, (row, label) in enumerate(zip(body, labels, strict=True)):
                header = prompt(
                    workload["name"],
                    workload["flops"] or 0.0,
                    machine,
                    family.vectors.sketch,
                    float(label),
                )
                found.tokens.append(np.concatenate([np.array(header), row]))
                found.chosen.append(np.array([False] * len(header) + of_body))
                found.measured.append(number < len(family.measured.vectors))
    if not found.tokens:
        raise DatasetError(f"{dataset.path} has no program that can be written down")
    return found


def fit_generator(
    dataset: Dataset,
    *,
    only: Collection[str] | None = None,
    hardware: Collection[str] | None = None,
    config: GeneratorConfig | None = None,
    start: Generator | None = None,
    teacher: CostModel | None = None,
    seed: int = 0,
    checkpoints: Path | None = None,
    on_progress: Callable[[int, int, float], None] | None = None,
) -> Generator:
    """Train a generator on programs that were not measured, then on those that were, too.

    Good programs and bad ones are learnt from alike, each told apart by its quality token.

    Parameters
    ----------
    dataset, only, hardware
        See :func:`write_down`.
    config
        Its size and training; of ``start``, if that is given, the training alone.
    start
        A generator to go on from, which was trained before: there is no pretraining then.
    teacher
        A model of schedules: what it thinks good is learnt from, beside random programs; without
        it there is no pretraining.
    seed
        Of weights and order.
    checkpoints
        A folder for what a training that is killed goes on from.
    on_progress
        Called with (step, steps, loss) after each step of either part.
    """
    config = config or GeneratorConfig()
    sentences = write_down(
        dataset,
        only=only,
        hardware=hardware,
        random_programs=config.random_programs,
        imagined_programs=config.imagined_programs,
        teacher=teacher if start is None else None,
        seed=seed,
    )
    model = start or Generator(VOCABULARY, LANGUAGE_VERSION, config, seed)
    measured = np.array(sentences.measured)
    parts = [
        ("pretraining", ~measured, config.pretrain_epochs),
        ("training", np.ones_like(measured), config.epochs),
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


def _tasks(
    dataset: Dataset, only: Collection[str] | None, hardware: Collection[str] | None
) -> Iterator[tuple[dict[str, Any], Hardware, dict[str, _Family]]]:
    """Yield a workload, hardware, and what was measured of it, by sketch."""
    workloads = dataset.scan("workloads").drop("mod_script").collect()
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
            families = {
                str(sketch_id): family
                for (sketch_id,), group in rows.group_by("sketch_id", maintain_order=True)
                if sketch_id in sketches
                and (family := _family(workload_id, sketches[sketch_id], group)) is not None
            }
            if families:
                yield described[workload_id], machine, families


def _family(workload_id: str, instructions: str, group: pl.DataFrame) -> _Family | None:
    """Take up the programs of a sketch; ``None`` if there are none, or of another TVM's."""
    programs = [
        Program(workload_id, sketch_id, json.loads(decisions))
        for sketch_id, decisions in group.select("sketch_id", "decisions").iter_rows()
    ]
    try:
        vectors = DecisionVectors(Sketch.from_json(instructions), programs)
        grammar = Grammar(vectors)
    except (InputError, AssertionError):
        return None
    rows = vectors.encode(programs)
    usable = (rows >= 0).all(1)
    if not usable.any():
        return None
    measured = Programs(rows[usable], group["latency_s"].to_numpy()[usable])
    return _Family(vectors, grammar, measured)
