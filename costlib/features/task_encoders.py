"""The encoders of a task's sketches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from costlib.features.loop_nest import loop_nests
from costlib.features.schedule import ScheduleEncoder
from costlib.features.tiled_nest import TiledNest
from costlib.hardware import Hardware


def schedule_encoders(
    name: str,
    shapes: Sequence[Sequence[int]],
    mod: Any | None,
    sketches: Mapping[str, Sequence[Any]],
    hardware: Hardware,
) -> dict[str, ScheduleEncoder]:
    """Make an encoder for each sketch of a task.

    Parameters
    ----------
    name, shapes
        What the task computes, and the extents of its arguments.
    mod
        The task's module; without it loop nests are not described.
    sketches
        Instructions by sketch.
    hardware
        What the programs are for.
    """
    nests = {} if mod is None else {nest.block: nest for nest in loop_nests(mod)}
    return {
        sketch_id: ScheduleEncoder(
            instructions, name, shapes, TiledNest(nests, instructions, hardware)
        )
        for sketch_id, instructions in sketches.items()
    }
