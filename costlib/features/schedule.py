"""Features of schedules as they are written down: decisions and steps, without lowering.

TLP (ASPLOS'23) showed that the sequence of schedule primitives is enough to rank programs. Here
every instruction that decides something is a token with its numbers; what a sketch does besides,
what its workload computes and the hardware are the context. It takes no TVM, works for imported
schedules of Ansor and AutoTVM as well, and encodes thousands of programs of a sketch at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from costlib.arrays import Float32s, Floats
from costlib.features.batch import FeatureBatch, concatenate
from costlib.features.columns import CONTEXT, columns_of
from costlib.features.tiled_nest import TiledNest
from costlib.features.tiled_programs import COLUMNS as NEST_COLUMNS
from costlib.identity import content_id

_VALUES = 8
"""Numbers of a decision that are kept, the innermost ones."""

_PRODUCTS = 4
_KINDS = 12
_WORDS = 24
_STEPS = 16
_SIZES = 4

TOKEN_FEATURES = _KINDS + 4 + _VALUES + _PRODUCTS
"""Kind; place, how many numbers, log of their product, any below zero; their logs, from the
innermost outwards; the logs of the products of the innermost 1, 2, ..."""

CONTEXT_FEATURES = _STEPS + _WORDS + _SIZES + len(NEST_COLUMNS)
"""How often each kind of instruction occurs, the words of the workload's name, the logs of its
largest arguments; what follows of the main loop nest."""

_KNOWN_KINDS = ("SamplePerfectTile", "SampleCategorical", "SampleComputeLocation", "Annotate")


class ScheduleEncoder:
    """Encodes programs of one sketch of one workload.

    Parameters
    ----------
    instructions
        The sketch's instructions, see :class:`costlib.space.program.Sketch`.
    name
        What the workload computes, e.g. ``"conv2d_add_relu"``.
    shapes
        The extents of its arguments.
    nest
        Describes the main loop nest; without it, that is left at zero.
    """

    def __init__(
        self,
        instructions: Sequence[Any],
        name: str,
        shapes: Sequence[Sequence[int]],
        nest: TiledNest | None = None,
    ) -> None:
        self._instructions = instructions
        self.nest = nest
        sizes = sorted((math.log2(math.prod(shape) + 1) for shape in shapes), reverse=True)
        self._sketch = np.concatenate(
            [
                np.log1p(_count((_kind_name(i) for i in instructions), _STEPS)),
                _count(re.findall(r"[a-z0-9]+", name.lower()), _WORDS),
                np.pad(sizes[:_SIZES], (0, max(0, _SIZES - len(sizes)))),
            ]
        ).astype("float32")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of what describes a program beside its tokens, from the task on."""
        is_on_gpu = self.nest is not None and self.nest.width > len(NEST_COLUMNS)
        return columns_of("schedule", "cuda" if is_on_gpu else "cpu")

    def context(self, decisions: Mapping[int, Any], count: int) -> Float32s:
        """Describe `n` programs by the :attr:`columns` behind those of task and hardware, float32.

        It takes what :meth:`costlib.features.tiled_nest.TiledNest.describe` does.
        """
        if self.nest is None:
            nests = np.zeros((count, len(NEST_COLUMNS)), "float32")
        else:
            nests = self.nest.describe(decisions, count)
        return np.hstack([np.tile(self._sketch, (count, 1)), nests])

    def tokens(self, decisions: Sequence[Sequence[Any]]) -> Float32s:
        """Encode `n` programs as float32 `n x t x TOKEN_FEATURES`, a token for each decision.

        Decisions are ``[instruction, value]`` pairs, the instructions being the same for all.
        """
        places = [index for index, _ in decisions[0]] if decisions else []
        tokens = np.zeros((len(decisions), max(len(places), 1), TOKEN_FEATURES), "float32")
        for place, index in enumerate(places):
            instruction = self._instructions[index]
            numbers = [_numbers(instruction, program[place][1]) for program in decisions]
            tokens[:, place, _kind(instruction)] = 1
            tokens[:, place, _KINDS] = place / 8
            tokens[:, place, _KINDS + 1 :] = _describe(numbers)
        return tokens


def schedule_batch(
    encoders: Mapping[str, ScheduleEncoder],
    sketch_ids: Sequence[str],
    decisions: Sequence[Sequence[Any]],
    context: Float32s,
) -> FeatureBatch:
    """Put `n` programs of one workload into a batch; there is an encoder for each sketch.

    Tokens are in the place of stores. ``context`` is what
    :func:`costlib.features.task_context.task_features` says of the task; that of sketch and program
    follows it.
    """
    tokens: list[Float32s] = [np.empty((0, TOKEN_FEATURES), "float32")] * len(sketch_ids)
    names = np.asarray(sketch_ids)
    columns = next((encoders[name].columns for name in sketch_ids), CONTEXT["schedule"])
    contexts = np.zeros((len(sketch_ids), len(columns)), "float32")
    contexts[:, : len(context)] = context
    for sketch_id in np.unique(names):
        rows = np.flatnonzero(names == sketch_id)
        encoder = encoders[str(sketch_id)]
        programs = [decisions[int(row)] for row in rows]
        encoded = encoder.tokens(programs)
        decided = {
            index: [program[place][1] for program in programs]
            for place, (index, _) in enumerate(programs[0])
        }
        contexts[rows, len(context) :] = encoder.context(decided, len(rows))
        for row, program in zip(rows, encoded, strict=True):
            tokens[row] = program
    return concatenate(tokens, contexts, columns)


def _describe(numbers: list[list[float]]) -> Float32s:
    """Describe the numbers of one decision in each program, float32 `n x`."""
    width = max(len(values) for values in numbers)
    table = np.ones((len(numbers), max(width, _VALUES)), "float64")
    for row, values in zip(table, numbers, strict=True):
        row[: len(values)] = values[::-1]
    logs = np.log2(1 + np.abs(table[:, :_VALUES]))
    logs[:, width:] = 0
    products = np.cumsum(np.log2(np.maximum(np.abs(table), 1)), axis=1)
    counts, negative = np.full(len(numbers), width / 4), (table < 0).any(1)
    columns = [counts, products[:, -1], negative, logs, products[:, :_PRODUCTS]]
    return np.column_stack(columns).astype("float32")


def _numbers(instruction: Any, value: Any) -> list[float]:
    """Return the numbers that a decision comes to."""
    if _kind_name(instruction) == "SampleCategorical" and isinstance(value, int):
        candidates = instruction[2][0]
        value = candidates[value] if 0 <= value < len(candidates) else value
    return list(_flat(value))


def _flat(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    elif isinstance(value, (int, float)):
        yield float(value)
    elif isinstance(value, str):
        yield float(_bucket(value, 64))


def _kind_name(instruction: Any) -> str:
    first = instruction[0] if isinstance(instruction, list) and instruction else instruction
    return first if isinstance(first, str) else "step"


def _kind(instruction: Any) -> int:
    name = _kind_name(instruction)
    if name in _KNOWN_KINDS:
        return _KNOWN_KINDS.index(name)
    return len(_KNOWN_KINDS) + _bucket(name, _KINDS - len(_KNOWN_KINDS))


def _count(words: Any, buckets: int) -> Floats:
    counts = np.zeros(buckets)
    for word in words:
        counts[_bucket(word, buckets)] += 1
    return counts


def _bucket(word: str, buckets: int) -> int:
    return int(content_id(word)[:8], 16) % buckets
