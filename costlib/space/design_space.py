"""The design space of a task: its sketches, random programs, and programs made concrete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np

from costlib.errors import quoted
from costlib.identity import content_id
from costlib.space.derivation import Derivation, derived, postprocessed, refusal
from costlib.space.program import Program, Sketch, fill_sketch, split_trace
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import mutate_trace, mutators, trace_from_json, trace_to_json
from costlib.workloads.task import Task

TILE_DIRECTIONS = ("tile_spatial", "tile_reduction", "vectorize")
"""What MetaSchedule's one mutator of tile sizes changes, told apart by the decision."""

_TILE_MUTATOR = "tile_size"
_MAX_SEED = 2**31 - 1
_MAX_TRIES = 16
_MAX_FAILED = 256
"""Sketches in a row that cannot be filled in at random, before a task's are taken for hopeless."""

_SPATIAL_LEVELS = 4
"""Multi-level tiling splits spatial loops into at least so many, reduction loops into fewer."""


class DesignSpace:
    """MetaSchedule's design space of one task, with programs as data.

    Parameters
    ----------
    task
        The task; its target decides which schedule rules and postprocessors apply.
    num_threads
        So many programs are lowered at once, and described at once.
    """

    def __init__(self, task: Task, num_threads: int = 1) -> None:
        self.task = task
        self._num_threads = num_threads

    @cached_property
    def _derivation(self) -> Derivation:
        return derived(self.task)

    @cached_property
    def context(self) -> Any:
        """The ``TuneContext`` with the rules and postprocessors that the task was derived with."""
        return self._derivation.rules.context(self.task, self._num_threads)

    @property
    def left(self) -> str | None:
        """Why the task has no design space and is left as TVM compiles it; ``None`` if it has."""
        return self._derivation.left

    @property
    def _traces(self) -> Sequence[list[Any]]:
        return self._derivation.traces

    @cached_property
    def sketches(self) -> list[Sketch]:
        """The sketches that the schedule rules derive for this task; none if it is left alone."""
        return [split_trace(instructions, [])[0] for instructions in self._traces]

    @cached_property
    def cluster(self) -> str:
        """Content hash of the set of sketches: look-alike tasks have the same."""
        return content_id(sorted({sketch.sketch_id for sketch in self.sketches}))

    @cached_property
    def _by_id(self) -> dict[str, Sketch]:
        return {sketch.sketch_id: sketch for sketch in self.sketches}

    @property
    def is_tunable(self) -> bool:
        """Whether any sketch leaves a decision open."""
        return any(
            instruction[0].startswith("Sample")
            for sketch in self.sketches
            for instruction in sketch.instructions
        )

    def sample(self, seed: int) -> Iterator[tuple[Program, Any]]:
        """Draw random programs; without end, unless hardly any can be made.

        Parameters
        ----------
        seed
            The same seed gives the same programs.

        Yields
        ------
        program, schedule
            The program and the ``tvm.s_tir.Schedule`` that it lowers to, or ``None`` in its
            place if the decisions do not pass the postprocessors.
        """
        for program, schedule in self._drawn(seed):
            yield program, self._postprocessed(schedule)

    def examples(self, seed: int) -> Iterator[Program]:
        """Draw the programs of :meth:`sample`, but postprocess none of them."""
        return (program for program, _ in self._drawn(seed))

    def _drawn(self, seed: int) -> Iterator[tuple[Program, Any]]:
        rng = np.random.default_rng(seed)
        failed = 0
        while self._traces and failed < _MAX_FAILED:
            instructions = self._traces[int(rng.integers(len(self._traces)))]
            schedule = self._schedule(int(rng.integers(1, _MAX_SEED)))
            try:
                trace_from_json(instructions, [], schedule)
            except Exception:
                failed += 1
                continue
            failed = 0
            yield self._program(*trace_to_json(schedule.trace)), schedule

    def lower(self, program: Program, sketch: Sketch | None = None) -> Any | None:
        """Replay a program.

        Parameters
        ----------
        program
            A program of this task.
        sketch
            Its sketch, if that is not among :attr:`sketches`.

        Returns
        -------
        schedule
            The ``tvm.s_tir.Schedule``, or ``None`` if the program does not apply to this
            task or does not pass the postprocessors.
        """
        return self._replayed(program, sketch or self._by_id.get(program.sketch_id))[0]

    def refusal(self, program: Program) -> str | None:
        """Say in a line why :meth:`lower` refuses a program; ``None`` if it does not."""
        return self._replayed(program, self._by_id.get(program.sketch_id))[1]

    def _replayed(self, program: Program, sketch: Sketch | None) -> tuple[Any | None, str | None]:
        """Return a program's schedule, or why there is none."""
        if sketch is None:
            return None, "its sketch is none of this task's"
        schedule = self._untouched.copy()
        try:
            trace_from_json(*fill_sketch(sketch, program.decisions), schedule)
        except Exception as error:
            return None, f"its decisions do not apply to this task ({quoted(error)})"
        why = None if sketch.is_final else refusal(self.context, schedule)
        return (schedule if why is None else None), why

    def lower_all(self, programs: Sequence[Program]) -> list[Any | None]:
        """Replay programs, several at once; each as :meth:`lower` does."""
        if not programs:
            return []
        with ThreadPoolExecutor(min(self._num_threads, len(programs))) as threads:
            return list(threads.map(self.lower, programs))

    def mutate(
        self, program: Program, seed: int, direction: str | None = None
    ) -> tuple[Program, str] | None:
        """Change one decision of a program, or a few that belong together.

        Parameters
        ----------
        program
            A program of one of this task's sketches.
        seed
            The same seed gives the same mutation.
        direction
            What to change, see :meth:`directions`; drawn with MetaSchedule's stock
            probabilities if not given.

        Returns
        -------
        program, direction
            The mutated program and what was changed, or ``None`` if the program has nothing
            to change in this direction.
        """
        rng = np.random.default_rng(seed)
        available = mutators(self.context)
        if direction is None:
            weights = np.array([probability for _, probability in available.values()])
            name = str(rng.choice(list(available), p=weights / weights.sum()))
        else:
            name = _TILE_MUTATOR if direction in TILE_DIRECTIONS else direction
        sketch = self._by_id[program.sketch_id]
        schedule = self._schedule(1)
        trace_from_json(*fill_sketch(sketch, program.decisions), schedule)
        mutator, _ = available[name]
        for _ in range(1 if direction is None else _MAX_TRIES):
            try:
                trace = mutate_trace(mutator, schedule.trace, int(rng.integers(1, _MAX_SEED)))
            except Exception:  # A mutator that fails has nothing to change.
                return None
            if trace is None:
                return None
            child = self._program(*trace_to_json(trace))
            changed = _direction(name, sketch, program, child)
            if direction in (None, changed):
                return child, changed
        return None

    def directions(self, program: Program) -> list[str]:
        """List the directions in which a program's sketch may be changed.

        A direction is ``tile_spatial`` or ``tile_reduction`` (the tile sizes of either group
        of axes), ``vectorize`` (the width of cooperative fetching on GPUs), ``unroll``,
        ``parallel``, ``compute_location`` or ``thread_binding``.
        """
        sketch = self._by_id[program.sketch_id]
        kinds = {instruction[0] for instruction in sketch.instructions}
        annotated = {i[2][0] for i in sketch.instructions if i[0] == "Annotate"}
        tiles = {tile_direction(i) for i in sketch.instructions if i[0] == "SamplePerfectTile"}
        allowed = {
            "unroll": any(name.startswith("meta_schedule.unroll") for name in annotated),
            "parallel": "meta_schedule.parallel" in annotated,
            "compute_location": "SampleComputeLocation" in kinds,
            "vectorize": "meta_schedule.cooperative_fetch" in annotated,
            "thread_binding": "SampleCategorical" in kinds,
        }
        possible = {*mutators(self.context), *TILE_DIRECTIONS}
        others = [name for name, has in allowed.items() if has and name in possible]
        return [*sorted(tiles, reverse=True), *others]

    def _program(self, instructions: list[Any], decisions: list[Any]) -> Program:
        sketch, decided = split_trace(instructions, decisions)
        return Program(self.task.workload_id, sketch.sketch_id, decided)

    @cached_property
    def _untouched(self) -> Any:
        """A schedule to copy, which is much faster than making one."""
        return self._schedule(1)

    def _schedule(self, seed: int) -> Any:
        return tvm.s_tir.Schedule(self.task.mod, seed=seed, error_render_level="none")

    def _postprocessed(self, schedule: Any) -> Any | None:
        return postprocessed(self.context, schedule)


def _direction(mutator: str, sketch: Sketch, parent: Program, child: Program) -> str:
    """Name what a mutator changed; tile sizes by the group of their axis."""
    if mutator != _TILE_MUTATOR:
        return mutator
    before = dict(parent.decisions)
    changed = [index for index, value in child.decisions if before.get(index) != value]
    return tile_direction(sketch.instructions[changed[0]]) if changed else "tile_spatial"


def tile_direction(instruction: list[Any]) -> str:
    """Name the direction of a decision that MetaSchedule's mutator of tile sizes changes."""
    kind, _, attributes, _ = instruction
    if kind != "SamplePerfectTile":
        return "vectorize"
    return "tile_spatial" if attributes[0] >= _SPATIAL_LEVELS else "tile_reduction"
