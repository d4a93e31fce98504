"""Traces of older MetaSchedules, in the instructions of today's."""

from __future__ import annotations

from typing import Any

_RENAMED = {"GetBlock": "GetSBlock"}

_NEW_ATTRIBUTES: dict[str, list[Any]] = {
    "Split": [True, False],
    "Fuse": [True],
    "ComputeAt": [True, -1],
    "ReverseComputeAt": [True, -1],
    "Blockize": [True],
    "Tensorize": ["", True],
    "TransformLayout": [0, 0, None, None, False],
}
"""The attributes of an instruction, as default for those at the end that it lacks."""

_NEW_INPUTS: dict[str, list[Any]] = {"CacheRead": [None, []], "CacheWrite": [None, []]}


def translate_trace(instructions: list[Any]) -> list[Any]:
    """Return a trace's instructions as TVM 0.27 writes them; those of 0.27 stay as they are.

    Decisions have never changed.

    Raises
    ------
    ValueError
        This is no list of instructions.
    """
    translated = []
    for instruction in instructions:
        kind, inputs, attributes, outputs = instruction
        kind = _RENAMED.get(kind, kind)
        attributes = [*attributes, *_NEW_ATTRIBUTES.get(kind, [])[len(attributes) :]]
        inputs = [*inputs, *_NEW_INPUTS.get(kind, [])[len(inputs) :]]
        if kind == "Split":
            attributes = [int(attributes[0]), int(attributes[1])]
        translated.append([kind, inputs, attributes, outputs])
    return translated
