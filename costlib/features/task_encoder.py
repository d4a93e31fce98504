"""Programs of one task on one hardware, as the models see them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from costlib.canary_times import CanaryTimes
from costlib.features.batch import FeatureBatch
from costlib.features.loop_nest import loop_nests
from costlib.features.lowered import lowered_batch
from costlib.features.precision import Argument, precision
from costlib.features.schedule import ScheduleEncoder, schedule_batch
from costlib.features.task_context import task_features
from costlib.features.tiled_nest import TiledNest
from costlib.hardware import Hardware
from costlib.schema import CacheState
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program
from costlib.tvm_compat.api import module_from_json


class TaskEncoder:
    """Describes the programs of a task, by their schedules or lowered.

    Parameters
    ----------
    name, arguments, flops
        What the task computes, type and extents of its arguments, and its operations.
    mod
        The task's module; without it, loop nests of schedules are left at zero.
    sketches
        Instructions of each sketch, by its id.
    hardware
        What the programs are for.
    canary
        What the hardware's canaries take, if known.
    cache
        What the programs find in the caches.

    Attributes
    ----------
    context
        What :func:`costlib.features.task_context.task_features` says.
    sketches
        The encoder of each sketch.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[Argument],
        flops: float,
        mod: Any | None,
        sketches: Mapping[str, Sequence[Any]],
        hardware: Hardware,
        canary: CanaryTimes | None = None,
        cache: CacheState = CacheState.WARM,
    ) -> None:
        nests = {} if mod is None else {nest.block: nest for nest in loop_nests(mod)}
        self.context = task_features(flops, precision(arguments, mod), hardware, canary, cache)
        shapes = [shape for _, shape in arguments]
        self.sketches = {
            sketch_id: ScheduleEncoder(
                instructions, name, shapes, TiledNest(nests, instructions, hardware)
            )
            for sketch_id, instructions in sketches.items()
        }
        self._hardware = hardware

    @classmethod
    def of_space(
        cls, space: DesignSpace, hardware: Hardware, canary: CanaryTimes | None = None
    ) -> TaskEncoder:
        """Make the encoder of a task with all sketches of its design space."""
        task = space.task
        sketches = {sketch.sketch_id: sketch.instructions for sketch in space.sketches}
        return cls(
            *(task.name, task.arguments, task.flops, task.mod),
            *(sketches, hardware, canary, task.cache),
        )

    @classmethod
    def of_row(
        cls,
        row: Mapping[str, Any],
        sketches: Mapping[str, Sequence[Any]],
        hardware: Hardware,
        canary: CanaryTimes | None = None,
        cache: CacheState = CacheState.WARM,
    ) -> TaskEncoder:
        """Make the encoder of a row of :data:`costlib.schema.WORKLOADS`."""
        arguments = [(argument["dtype"], argument["shape"]) for argument in row["arguments"]]
        mod = None if row["mod_json"] is None else module_from_json(row["mod_json"])
        flops = row["flops"] or 0.0
        return cls(row["name"], arguments, flops, mod, sketches, hardware, canary, cache)

    def schedules(self, programs: Sequence[Program]) -> FeatureBatch:
        """Describe `n` programs by their schedules."""
        return schedule_batch(
            self.sketches,
            [program.sketch_id for program in programs],
            [program.decisions for program in programs],
            self.context,
        )

    def written_schedules(
        self, sketch_ids: Sequence[str], decisions: Sequence[str]
    ) -> FeatureBatch:
        """Describe `n` programs by their schedules, decisions being JSON as in a dataset."""
        decided = [json.loads(text) for text in decisions]
        return schedule_batch(self.sketches, sketch_ids, decided, self.context)

    def lowered(self, context: Any, schedules: Sequence[Any]) -> FeatureBatch:
        """Describe lowered programs; see :func:`costlib.features.lowered.lowered_batch`."""
        return lowered_batch(context, schedules, self.context, self._hardware)
