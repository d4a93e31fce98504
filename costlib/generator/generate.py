"""Programs written by a bundle's generator: no search, no measuring (TLM, OSDI'24).

Writing is cheap, so many are written, and as many drawn at random, lest a kind is missed that the
generator never writes; the best by the model of schedules are lowered, and the best of those by the
exact model are what is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from costlib.arrays import Integers
from costlib.errors import InputError
from costlib.generator.language import Grammar, prompt
from costlib.generator.model import Generator
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.hub.catalog import load_pretrained
from costlib.hub.scorer import BundleScorer
from costlib.measure.measurement import Candidate
from costlib.schema import Origin
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors, sketch_vectors
from costlib.tvm_compat.api import structural_key
from costlib.workloads import extract_tasks
from costlib.workloads.task import Task

_WRITTEN = 32
"""Programs that are written for each one asked for; as many are drawn."""

_LOWERED = 16
"""Of those, so many are lowered."""


class RankedProgram(BaseModel):
    """A program, whether it was written or drawn at random, and the cost model's score."""

    model_config = ConfigDict(frozen=True)

    program_id: str
    sketch_id: str
    decisions: str
    origin: Origin
    score: float


class Generated(BaseModel):
    """What was written for a task, or drawn at random.

    Attributes
    ----------
    task, workload_id
        The task.
    written, drawn
        How many different programs were written, and how many others were drawn at random.
    lowered, valid
        How many of all these were lowered, and how many of those pass TVM's postprocessors.
    programs
        The valid ones with the highest scores, the best first; of those that come to the same
        code one.
    notice
        Why programs that should have been written were drawn at random.
    """

    model_config = ConfigDict(frozen=True)

    task: str
    workload_id: str
    written: int
    drawn: int
    lowered: int
    valid: int
    programs: tuple[RankedProgram, ...]
    notice: str | None


def generate(
    source: Any,
    bundle: Bundle,
    hardware: Hardware,
    count: int,
    seed: int = 0,
    temperature: float = 1.0,
) -> Generated:
    """Write programs of a source's heaviest task and rank them.

    Parameters
    ----------
    source
        Whatever :func:`costlib.workloads.load_network` takes.
    bundle
        A bundle with a generator.
    hardware
        What to write for.
    count
        How many programs; many times as many are written, and drawn at random.
    seed
        Decides which.
    temperature
        See :meth:`costlib.generator.model.Generator.generate`.

    Raises
    ------
    InputError
        ``count`` is below 1, the source has nothing to tune, or the bundle has no generator.
    """
    if count < 1:
        raise InputError(f"{count} programs were asked for; it must be at least 1")
    generator = bundle.require_generator()
    threads = len(os.sched_getaffinity(0))
    spaces = (DesignSpace(task, num_threads=threads) for task in extract_tasks(source, hardware))
    space = next((space for space in spaces if space.is_tunable), None)
    if space is None:
        raise InputError(f"{source} has nothing to tune")
    task = space.task
    vectors = sketch_vectors(space, seed)
    writer = Writer(generator, task, hardware, vectors)
    made = writer.write_and_draw(_WRITTEN * count, np.random.default_rng(seed), temperature)
    best = pick(made.programs, space, BundleScorer(bundle, hardware), count)
    origins = {p.program_id: o for p, o in zip(made.programs, made.origins, strict=True)}
    return Generated(
        task=task.name,
        workload_id=task.workload_id,
        written=made.origins.count(Origin.GENERATED),
        drawn=made.origins.count(Origin.RANDOM),
        lowered=best.lowered,
        valid=best.valid,
        programs=tuple(
            RankedProgram(
                program_id=candidate.program.program_id,
                sketch_id=candidate.program.sketch_id,
                decisions=candidate.program.decisions_json(),
                origin=origins[candidate.program.program_id],
                score=score,
            )
            for candidate, score in zip(best.candidates, best.scores, strict=True)
        ),
        notice=made.notice,
    )


@dataclass(frozen=True)
class Picked:
    """The best of many programs.

    Attributes
    ----------
    lowered, valid
        How many were lowered, and how many of those pass TVM's postprocessors.
    candidates, scores
        Valid ones and their scores, the best first.
    """

    lowered: int
    valid: int
    candidates: list[Candidate]
    scores: list[float]


def pick(
    programs: Sequence[Program], space: DesignSpace, scorer: BundleScorer, count: int
) -> Picked:
    """Pick programs in two stages; of those that come to the same code one."""
    first = np.argsort(-scorer.first_look(space, programs), kind="stable")[: _LOWERED * count]
    few = [programs[i] for i in first]
    lowered = zip(few, space.lower_all(few), strict=True)
    valid = [(program, schedule) for program, schedule in lowered if schedule is not None]
    by_code = {structural_key(schedule.mod): Candidate(p, schedule) for p, schedule in valid}
    distinct = list(by_code.values())
    scores = scorer(space, [one.schedule for one in distinct])
    order = np.argsort(-scores, kind="stable")[:count]
    return Picked(len(few), len(valid), [distinct[i] for i in order], scores[order].tolist())


@dataclass(frozen=True)
class Written:
    """Programs of a task.

    Attributes
    ----------
    programs
        Each once.
    origins
        Of each, whether it was written or drawn at random.
    notice
        Why some that should have been written were drawn, ``None`` if there were none.
    """

    programs: list[Program]
    origins: list[Origin]
    notice: str | None = None


class Writer:
    """Writes programs of one task.

    Parameters
    ----------
    generator
        The model.
    task, hardware
        What to write for.
    vectors
        The decisions of each sketch, by its id.
    """

    def __init__(
        self,
        generator: Generator,
        task: Task,
        hardware: Hardware,
        vectors: Mapping[str, DecisionVectors],
    ) -> None:
        self._generator = generator
        self._task = task
        self._hardware = hardware
        self._vectors = vectors

    def write(
        self, sketch_id: str, count: int, rng: np.random.Generator, temperature: float = 1.0
    ) -> tuple[Integers, str | None]:
        """Write good programs of a sketch.

        Returns
        -------
        vectors, notice
            int64 `count x d`; drawn at random, with a notice, where the sketch cannot be written.
        """
        vectors = self._vectors[sketch_id]
        try:
            grammar = Grammar(vectors)
            opening = prompt(
                self._task.name, self._task.flops, self._hardware, vectors.sketch, label=1.0
            )
            layout = [entry if isinstance(entry, int) else None for entry in grammar.layout]
            tokens = self._generator.generate(
                opening, layout, grammar.allowed, count, rng, temperature
            )
        except InputError as error:
            return vectors.random(count, rng), f"drawn at random: {error}"
        return grammar.decode(tokens), None

    def write_all(self, count: int, rng: np.random.Generator, temperature: float = 1.0) -> Written:
        """Write programs of all sketches, as many of each."""
        programs: dict[str, Program] = {}
        origins: list[Origin] = []
        notices: list[str] = []
        each = -(-count // max(len(self._vectors), 1))
        for sketch_id, vectors in self._vectors.items():
            rows, notice = self.write(sketch_id, each, rng, temperature)
            programs |= {p.program_id: p for p in vectors.decode(np.unique(rows, axis=0))}
            origin = Origin.RANDOM if notice else Origin.GENERATED
            origins += [origin] * (len(programs) - len(origins))
            notices += [notice] if notice else []
        return Written(list(programs.values()), origins, notices[0] if notices else None)

    def draw(self, count: int, rng: np.random.Generator) -> Written:
        """Draw programs of all sketches at random, as many of each."""
        each = -(-count // max(len(self._vectors), 1))
        drawn = (p for one in self._vectors.values() for p in one.decode(one.random(each, rng)))
        programs = list({program.program_id: program for program in drawn}.values())
        return Written(programs, [Origin.RANDOM] * len(programs))

    def write_and_draw(
        self, count: int, rng: np.random.Generator, temperature: float = 1.0
    ) -> Written:
        """Write programs and draw as many at random."""
        written = self.write_all(count, rng, temperature)
        drawn = self.draw(count, rng)
        programs = {p.program_id: p for p in [*written.programs, *drawn.programs]}
        origins = written.origins + drawn.origins[: len(programs) - len(written.programs)]
        return Written(list(programs.values()), origins, written.notice)


class BundleWriter:
    """Writes programs of any task with a bundle's generator.

    Parameters
    ----------
    generator, hardware
        The model, and what it is to write for.
    """

    def __init__(self, generator: Generator, hardware: Hardware) -> None:
        self._generator = generator
        self._hardware = hardware

    def __call__(self, space: DesignSpace, count: int, seed: int) -> list[Program]:
        """Return about ``count`` programs."""
        vectors = sketch_vectors(space, seed)
        writer = Writer(self._generator, space.task, self._hardware, vectors)
        return writer.write_all(count, np.random.default_rng(seed)).programs


def load_writer(bundle: str, hardware: Hardware) -> BundleWriter:
    """Load the generator of a bundle, by its name or path.

    Raises
    ------
    InputError
        It has none.
    """
    return BundleWriter(load_pretrained(bundle).require_generator(), hardware)
