"""Programs of one task, written by a generator or drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from costlib.arrays import Integers
from costlib.errors import InputError
from costlib.generator.language import Grammar, prompt
from costlib.generator.model import Generator
from costlib.hardware import Hardware
from costlib.schema import Origin
from costlib.space.program import Program
from costlib.space.vectors import DecisionVectors
from costlib.workloads.task import Task


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
    """Writes programs of one task, by ``vectors``: the decisions of each sketch, by its id."""

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
