"""A node of an ONNX graph that is written in PyTorch, for models whose extents have names.

Extents are computed with as PyTorch does while it exports: a size is a number or a symbol, and a
shape a list of them, not a tensor. What is not written is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from costlib.workloads.ranges.labels import UnpaddableError

Operator = Callable[["OnnxNode"], Any]
OPERATORS: dict[str, Operator] = {}
"""By ONNX's names."""

MOST_SIZES = 16
"""In a list: a constant of more is a tensor alone."""


@dataclass(frozen=True)
class Constant:
    """A tensor that is known, and the same as an array."""

    tensor: torch.Tensor
    array: np.ndarray


@dataclass(frozen=True)
class OnnxNode:
    """A node of an ONNX graph.

    Attributes
    ----------
    values
        Its inputs, each a tensor, a :class:`Constant`, a size, a list of sizes, or ``None``.
    attributes
        Its attributes, by their names.
    opset
        What says what they mean.
    outputs
        How many results it has.
    """

    values: Sequence[Any]
    attributes: dict[str, Any]
    opset: int
    outputs: int = 1

    def value(self, number: int) -> Any:
        """Return an input, ``None`` if it is left out."""
        return self.values[number] if number < len(self.values) else None

    def tensor(self, number: int) -> Any:
        """Return an input as a tensor, or as the size that it is."""
        found = self.value(number)
        if isinstance(found, Constant):
            return found.tensor
        if isinstance(found, list):
            if not all(isinstance(n, int) for n in found):
                raise UnpaddableError("it computes with a shape")
            return torch.tensor(found)
        return found

    def sizes(self, number: int) -> Any:
        """Return an input as a size or a list of them; ``None`` if it is no such thing."""
        found = self.value(number)
        if not isinstance(found, Constant):
            return None if isinstance(found, torch.Tensor) else found
        is_shape = found.array.dtype.kind in "iu" and found.array.ndim < 2
        return found.array.tolist() if is_shape and found.array.size <= MOST_SIZES else None

    def given(self, name: str, number: int, default: Any = None) -> Any:
        """Return sizes that are an attribute in old opsets and an input in new ones."""
        found = self.attributes.get(name)
        if found is None:
            found = self.sizes(number)
        if found is None and self.value(number) is not None:
            raise UnpaddableError(f"its {name} depend on data")
        return default if found is None else found

    def refuse(self, **allowed: Any) -> None:
        """Raise unless attributes are left out or have the one value that is written here."""
        for name, value in allowed.items():
            if self.attributes.get(name, value) != value:
                raise UnpaddableError(f"its {name} is {self.attributes[name]}")


def operator_of(*names: str) -> Callable[[Operator], Operator]:
    """Enter operators."""

    def enter(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return enter


def listed(sizes: Any) -> list[Any]:
    """Return sizes as a list, a single one in a list of one."""
    return sizes if isinstance(sizes, list) else [sizes]
