"""The design space of a task: its sketches, random programs, and programs made concrete."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from costlib.space.program import Program, Sketch, fill_sketch, split_trace
from costlib.tvm_compat import ms, tvm
from costlib.tvm_compat.api import mutate_trace, mutators, trace_from_json, trace_to_json
from costlib.tvm_compat.quiet import stderr_silenced
from costlib.workloads.task import Task

_MAX_SEED = 2**31 - 1


class DesignSpace:
    """MetaSchedule's design space of one task, with programs as data.

    Parameters
    ----------
    task
        The task; its target decides which schedule rules and postprocessors apply.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.context = ms.TuneContext(
            mod=task.mod,
            target=task.tvm_target(),
            space_generator="post-order-apply",
            search_strategy="evolutionary",
            task_name=task.name,
            num_threads=1,
            rand_state=1,
        )

    @cached_property
    def _traces(self) -> list[list[Any]]:
        """The instructions of each sketch, with the annotations it starts from."""
        with stderr_silenced():  # Pooling names rules that TVM does not have, and TVM warns.
            schedules = self.context.generate_design_space()
        return [trace_to_json(schedule.trace)[0] for schedule in schedules]

    @cached_property
    def sketches(self) -> list[Sketch]:
        """The sketches that the schedule rules derive for this task."""
        return [split_trace(instructions, [])[0] for instructions in self._traces]

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
        """Draw random programs without end.

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
        rng = np.random.default_rng(seed)
        while True:
            instructions = self._traces[rng.integers(len(self._traces))]
            schedule = self._schedule(int(rng.integers(1, _MAX_SEED)))
            trace_from_json(instructions, [], schedule)
            program = self._program(*trace_to_json(schedule.trace))
            yield program, self._postprocessed(schedule)

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
        sketch = sketch or self._by_id.get(program.sketch_id)
        if sketch is None:
            return None
        schedule = self._schedule(1)
        try:
            trace_from_json(*fill_sketch(sketch, program.decisions), schedule)
        except (RuntimeError, ValueError, TypeError):
            return None
        return self._postprocessed(schedule)

    def mutate(self, program: Program, seed: int) -> tuple[Program, str] | None:
        """Change one decision of a program, or a few that belong together.

        Parameters
        ----------
        program
            A program of one of this task's sketches.
        seed
            The same seed gives the same mutation.

        Returns
        -------
        program, direction
            The mutated program and what was changed (``tile_size``, ``unroll``, ``parallel``,
            ``compute_location``, ...; drawn with MetaSchedule's stock probabilities), or
            ``None`` if this sketch has nothing to change in the direction drawn.
        """
        rng = np.random.default_rng(seed)
        directions = mutators(self.context)
        weights = np.array([probability for _, probability in directions.values()])
        direction = str(rng.choice(list(directions), p=weights / weights.sum()))
        sketch = self._by_id[program.sketch_id]
        schedule = self._schedule(1)
        trace_from_json(*fill_sketch(sketch, program.decisions), schedule)
        trace = mutate_trace(
            directions[direction][0], schedule.trace, int(rng.integers(1, _MAX_SEED))
        )
        return None if trace is None else (self._program(*trace_to_json(trace)), direction)

    def program_of(self, schedule: Any) -> Program:
        """Return the program that a schedule of this task was made from."""
        instructions, decisions = trace_to_json(schedule.trace)
        kinds = [instruction[0] for instruction in instructions]
        end = kinds.index("EnterPostproc") if "EnterPostproc" in kinds else len(kinds)
        return self._program(instructions[:end], [d for d in decisions if d[0] < end])

    def _program(self, instructions: list[Any], decisions: list[Any]) -> Program:
        sketch, decided = split_trace(instructions, decisions)
        return Program(self.task.workload_id, sketch.sketch_id, decided)

    def _schedule(self, seed: int) -> Any:
        return tvm.s_tir.Schedule(self.task.mod, seed=seed, error_render_level="none")

    def _postprocessed(self, schedule: Any) -> Any | None:
        schedule.enter_postproc()
        postprocessors = self.context.space_generator.postprocs
        return schedule if all(p.apply(schedule) for p in postprocessors) else None
