"""Workloads and tasks: what is tuned, apart from where it came from."""

from __future__ import annotations

import io
import keyword
import tokenize
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from costlib.identity import content_id
from costlib.schema import CacheState
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import argument_shapes, estimate_flops
from costlib.tvm_compat.straight_line import tensor_bytes
from costlib.workloads.title import task_title


@dataclass(frozen=True)
class Task:
    """One fused subgraph, to be compiled for one target.

    Attributes
    ----------
    name
        What the subgraph computes, e.g. ``"fused_conv2d_add_relu"``; not unique.
    mod
        An ``IRModule`` with one unscheduled ``PrimFunc`` called ``main``.
    target
        The target as a dictionary, see :attr:`costlib.hardware.Hardware.target`.
    weight
        How many times the network calls it.
    source
        The network, operator or file that it was taken from.
    cache
        What it finds in the caches when its network calls it.
    """

    name: str
    mod: Any = field(repr=False, compare=False)
    target: dict[str, Any]
    weight: int = 1
    source: str = ""
    cache: CacheState = CacheState.WARM

    @cached_property
    def workload_id(self) -> str:
        """Content hash of the computation; the names of variables do not matter."""
        return workload_id(self.mod)

    @cached_property
    def title(self) -> str:
        """What people are shown; see :func:`costlib.workloads.title.task_title`."""
        return task_title(self.name, self.arguments, self.workload_id)

    @cached_property
    def flops(self) -> float:
        """Floating-point operations of one call."""
        return estimate_flops(self.mod)

    @cached_property
    def arguments(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """(dtype, shape) of each argument, results last."""
        return argument_shapes(self.mod)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Which of its arguments are constants of the network."""
        return tuple(sorted(weight_arguments(self.mod)))

    @property
    def weight_bytes(self) -> int:
        """Size of those."""
        dtypes_and_shapes = [self.arguments[number] for number in self.weights]
        return sum(tensor_bytes(shape, dtype) for dtype, shape in dtypes_and_shapes)

    @property
    def nbytes(self) -> int:
        """Size of what it is called with, results included."""
        return sum(tensor_bytes(shape, dtype) for dtype, shape in self.arguments)

    def times(self, weight: int) -> Task:
        """Return the same task with another weight."""
        return replace(self, weight=weight)

    def tvm_target(self) -> Any:
        """Return the ``tvm.target.Target``."""
        return tvm.target.Target(self.target)


def weight_arguments(mod: Any) -> frozenset[int]:
    """Number the arguments of a task's module that are constants of its network."""
    main = mod["main"]
    free = main.attrs.get("layout_free_buffers", ()) if main.attrs else ()
    return frozenset(int(number) for number in free)


def workload_id(mod: Any) -> str:
    """Hash the computation in ``mod``.

    The hash is taken over the tokens of its TVMScript, in which variables are numbered in
    order of appearance: the same subgraph has the same id in every network, process and
    machine, whatever its variables were called.
    """
    return content_id(_canonical_tokens(mod["main"].script(show_meta=False)))


_LAYOUT_TOKENS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
_SCRIPT_NAMES = {"T", "I", "R"}


def _canonical_tokens(script: str) -> list[str]:
    found = tokenize.generate_tokens(io.StringIO(script).readline)
    tokens = [token for token in found if token.type not in _LAYOUT_TOKENS]
    numbers: dict[str, str] = {}
    canonical = []
    depth = 0
    for i, token in enumerate(tokens):
        text = token.string
        if token.type == tokenize.OP:
            depth += (text in "([{") - (text in ")]}")
        elif token.type in (tokenize.INDENT, tokenize.DEDENT):
            text = tokenize.tok_name[token.type]
        elif token.type == tokenize.NAME and not keyword.iskeyword(text):
            is_attribute = i > 0 and tokens[i - 1].string == "."
            is_keyword_argument = depth > 0 and tokens[i + 1].string == "="
            if text not in _SCRIPT_NAMES and not is_attribute and not is_keyword_argument:
                text = numbers.setdefault(text, f"v{len(numbers)}")
        canonical.append(text)
    return canonical
