"""Programs of one sketch as vectors of integers: made, changed and mixed thousands at a time.

Every decision has a list of values that it can take, and a program is a row of indices into these
lists. Tile sizes list all ways to tile their loop; categories all their candidates. What a compute
location or a parallel extent can be depends on the other decisions, so those list what was
seen in the examples; whether a program is valid only lowering tells.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from costlib.arrays import Integers
from costlib.errors import InputError
from costlib.space.bindings import read_bindings
from costlib.space.design_space import DesignSpace, tile_direction
from costlib.space.factors import Tilings, tilings
from costlib.space.gpu_niches import gpu_niches
from costlib.space.program import Program, Sketch

_EXAMPLES = 48
"""Random programs that show what the decisions of a task's sketches can be."""

_INNER_STEPS = (2, 16)
"""Iterations of a reduction's innermost tile from which a program is of another kind."""


class DecisionVectors:
    """The decisions of one sketch of one workload.

    Parameters
    ----------
    sketch
        The sketch.
    examples
        Programs of it: they show the extents of its loops, and what depends on the rest.

    Attributes
    ----------
    positions
        For each of `d` decisions the index of its instruction in the sketch.
    values
        For each decision the list of values it can take.
    directions
        For each decision the direction that a change of it is, see
        :meth:`costlib.space.design_space.DesignSpace.directions`.

    Raises
    ------
    InputError
        There is no example.
    """

    def __init__(self, sketch: Sketch, examples: Sequence[Program]) -> None:
        if not examples:
            raise InputError(f"sketch {sketch.sketch_id} has no example program to learn from")
        self.sketch = sketch
        self._workload_id = examples[0].workload_id
        self._bindings = read_bindings(sketch.instructions)
        self.positions = [index for index, _ in examples[0].decisions]
        self.directions = [_direction(sketch.instructions, i) for i in self.positions]
        known = [
            _values(sketch.instructions[index], [one.decisions[place][1] for one in examples])
            for place, index in enumerate(self.positions)
        ]
        self._tilings = [tiling for tiling, _ in known]
        self.values = [values for _, values in known]
        self.sizes = np.array([len(values) for values in self.values], "int64")
        self._index = [
            {json.dumps(value): number for number, value in enumerate(values)}
            for values in self.values
        ]

    def encode(self, programs: Sequence[Program]) -> Integers:
        """Return int64 `n x d`; -1 where a value is in no list."""
        rows = [
            [
                index.get(json.dumps(value), -1)
                for index, (_, value) in zip(self._index, program.decisions, strict=True)
            ]
            for program in programs
        ]
        return np.array(rows, "int64").reshape(-1, len(self.values))

    def decode(self, vectors: Integers) -> list[Program]:
        """Return the programs of `n x d` vectors."""
        places = list(zip(self.positions, self.values, strict=True))
        programs = []
        for row in vectors.tolist():
            chosen = zip(places, row, strict=True)
            decisions = [[position, values[choice]] for (position, values), choice in chosen]
            programs.append(Program(self._workload_id, self.sketch.sketch_id, decisions))
        return programs

    def random(self, count: int, rng: np.random.Generator) -> Integers:
        """Draw int64 `count x d`, every value of a decision alike."""
        return np.asarray(rng.random((count, len(self.sizes))) * self.sizes, "int64")

    def mutate(
        self, vectors: Integers, directions: Sequence[str], rng: np.random.Generator
    ) -> Integers:
        """Change one decision of each vector.

        Parameters
        ----------
        vectors
            int64 `n x d`.
        directions
            `n`: the direction in which each is changed. A tile size moves one prime factor to
            another level, anything else takes another of its values. What cannot be changed
            in its direction stays as it is.
        rng
            Decides which.
        """
        changed = vectors.copy()
        wanted = np.asarray(directions)
        for direction in np.unique(wanted):
            can_change = (np.array(self.directions) == direction) & (self.sizes > 1)
            places = np.flatnonzero(can_change).tolist()
            if not places:
                continue
            rows = np.flatnonzero(wanted == direction)
            chosen = rng.choice(places, len(rows))
            for place in places:
                of_place = rows[chosen == place]
                changed[of_place, place] = self._step(place, vectors[of_place, place], rng)
        return changed

    def crossover(self, one: Integers, other: Integers, rng: np.random.Generator) -> Integers:
        """Mix `n` pairs of vectors, each decision from either parent (node by node, as Ansor)."""
        return np.where(rng.random(one.shape) < 0.5, one, other)

    def niches(self, vectors: Integers) -> Integers:
        """Number the kinds of programs among `n x d` vectors; int64 `n`.

        A kind says which spatial loops have an innermost tile of one iteration (where all have,
        the compiler vectorises a loop further out), how much is unrolled, and whether a
        reduction's innermost tile is one iteration, a few that unroll or more: whether sums stay in
        registers. From one kind to another that is faster there is often no way by small steps.
        Those of a GPU are :func:`costlib.space.gpu_niches.gpu_niches`.
        """
        if self._bindings.binds_any:
            return gpu_niches(self._bindings, self._decided(vectors), len(vectors))
        numbers = np.zeros(len(vectors), "int64")
        inner = np.ones(len(vectors), "int64")
        for place, (name, tiling) in enumerate(zip(self.directions, self._tilings, strict=True)):
            if tiling is None:
                if name == "unroll":
                    numbers = self.sizes[place] * numbers + vectors[:, place]
            elif name == "tile_spatial":
                numbers = 2 * numbers + (tiling.factors[vectors[:, place], -1] == 1)
            elif name == "tile_reduction":
                inner *= tiling.factors[vectors[:, place], -1]
        return (1 + len(_INNER_STEPS)) * numbers + np.digitize(inner, _INNER_STEPS)

    def _decided(self, vectors: Integers) -> dict[int, Integers]:
        """Return by instruction the tile sizes, and the numbers of categories, of programs."""
        found = {}
        for place, index in enumerate(self.positions):
            tiling, choices = self._tilings[place], vectors[:, place]
            kind, _, attributes, _ = self.sketch.instructions[index]
            if tiling is not None:
                found[index] = tiling.factors[choices]
            elif kind == "SampleCategorical":
                found[index] = np.array(attributes[0], "int64")[choices]
        return found

    def _step(self, place: int, choices: Integers, rng: np.random.Generator) -> Integers:
        tiling = self._tilings[place]
        if tiling is not None:
            return tiling.step(choices, rng)
        shift = 1 + (rng.random(len(choices)) * (self.sizes[place] - 1)).astype("int64")
        return np.asarray((choices + shift) % self.sizes[place], "int64")


def sketch_vectors(
    space: DesignSpace, seed: int, known: Iterable[Program] = ()
) -> dict[str, DecisionVectors]:
    """Look at some random programs of a task, and others that are known; vectors by sketch id.

    A sketch that none of them fills in is left out.
    """
    examples: dict[str, list[Program]] = {}
    for program in itertools.chain(itertools.islice(space.examples(seed), _EXAMPLES), known):
        examples.setdefault(program.sketch_id, []).append(program)
    return {
        sketch.sketch_id: DecisionVectors(sketch, examples[sketch.sketch_id])
        for sketch in space.sketches
        if sketch.sketch_id in examples
    }


def _values(instruction: Any, seen: list[Any]) -> tuple[Tilings | None, list[Any]]:
    kind, _, attributes, _ = instruction
    if kind == "SamplePerfectTile":
        levels, max_innermost = attributes[0], attributes[1]
        extent = int(np.prod(seen[0], dtype="int64"))
        ways = tilings(extent, levels, max_innermost if max_innermost > 0 else extent)
        return ways, ways.factors.tolist()
    if kind == "SampleCategorical":
        return None, list(range(len(attributes[0])))
    distinct = {json.dumps(value): value for value in seen}
    return None, [distinct[text] for text in sorted(distinct)]


def _direction(instructions: list[Any], index: int) -> str:
    """Name what deciding an instruction otherwise would change."""
    kind, _, _, outputs = instructions[index]
    if kind == "SampleComputeLocation":
        return "compute_location"
    if kind == "Annotate":
        return "parallel"  # The only annotation that is a decision.
    if kind == "SampleCategorical":
        return _use_of_category(instructions, outputs[0])
    return tile_direction(instructions[index])


def _use_of_category(instructions: list[Any], variable: str) -> str:
    """Say what a category decides, from the annotation or the split that takes it."""
    for kind, inputs, attributes, _ in instructions:
        if kind == "Annotate" and variable in inputs:
            name = str(attributes[0])
            if name.startswith("meta_schedule.unroll"):
                return "unroll"
            return "vectorize" if name == "meta_schedule.cooperative_fetch" else name
    return "thread_binding"
