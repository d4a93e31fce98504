"""Sketches, decisions and programs as plain data: enough to replay a program, without TIR."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from costlib.identity import content_id


@dataclass(frozen=True)
class Sketch:
    """A design space of a task, its decisions erased.

    Attributes
    ----------
    instructions
        A trace's instructions as JSON values: kind, inputs, attributes, outputs of each.
        They name blocks and loops of the subgraph but no extents, so look-alike tasks
        share sketches.
    """

    instructions: list[Any] = field(repr=False)

    @cached_property
    def sketch_id(self) -> str:
        """Content hash of the instructions."""
        return content_id(self.instructions)

    @property
    def is_final(self) -> bool:
        """Whether it holds what postprocessors did, as some sketches of foreign logs do."""
        return any(instruction[0] == ENTER_POSTPROC for instruction in self.instructions)

    @classmethod
    def from_json(cls, text: str) -> Sketch:
        """Read what :meth:`to_json` wrote."""
        return cls(json.loads(text))

    def to_json(self) -> str:
        """Write the instructions as compact JSON."""
        return json.dumps(self.instructions, separators=(",", ":"))


_DECIDED_ANNOTATIONS = {"meta_schedule.parallel"}
"""Annotations whose value MetaSchedule's mutators change: decisions, in all but name."""

ENTER_POSTPROC = "EnterPostproc"
"""The instruction after which a trace holds what postprocessors did."""


def split_trace(instructions: list[Any], decisions: list[Any]) -> tuple[Sketch, list[Any]]:
    """Take a trace apart into its sketch and everything that was decided.

    Parameters
    ----------
    instructions, decisions
        A trace as JSON values, without postprocessing.

    Returns
    -------
    sketch, decisions
        The inverse is :func:`fill_sketch`.
    """
    decided = dict(decisions)
    erased = []
    for index, instruction in enumerate(instructions):
        kind, inputs, attributes, outputs = instruction
        if kind == "Annotate" and attributes[0] in _DECIDED_ANNOTATIONS:
            decided[index] = inputs[1]
            inputs = [inputs[0], None]
        erased.append([kind, inputs, attributes, outputs])
    return Sketch(erased), [[index, decided[index]] for index in sorted(decided)]


def fill_sketch(sketch: Sketch, decisions: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return a trace's (instructions, decisions) from a sketch and what was decided."""
    decided = dict(decisions)
    instructions = []
    for index, instruction in enumerate(sketch.instructions):
        kind, inputs, attributes, outputs = instruction
        if kind == "Annotate" and attributes[0] in _DECIDED_ANNOTATIONS:
            inputs = [inputs[0], decided.pop(index)]
        instructions.append([kind, inputs, attributes, outputs])
    return instructions, [[index, decided[index]] for index in sorted(decided)]


@dataclass(frozen=True)
class Program:
    """A sketch of a workload with every decision made.

    Attributes
    ----------
    workload_id, sketch_id
        What is computed, and the sketch that is filled in.
    decisions
        ``[instruction index, value]`` pairs in trace order. A value is the list of factors
        of a ``SamplePerfectTile``, the index of a ``SampleCategorical``, the loop of a
        ``SampleComputeLocation``, or the value of an annotation that mutations change.
    """

    workload_id: str
    sketch_id: str
    decisions: list[Any]

    @cached_property
    def program_id(self) -> str:
        """Content hash of workload, sketch and decisions."""
        return content_id(self.workload_id, self.sketch_id, self.decisions)

    @classmethod
    def from_row(cls, workload_id: str, sketch_id: str, decisions: str) -> Program:
        """Read a program from the columns of a measurement."""
        return cls(workload_id, sketch_id, json.loads(decisions))

    def decisions_json(self) -> str:
        """Write the decisions as compact JSON."""
        return json.dumps(self.decisions, separators=(",", ":"))
