"""A node of an ONNX graph as its converter sees it, and the table of converters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from costlib.workloads.importers.onnx.tensors import Tensor

Value: TypeAlias = "Tensor | list[Any] | None"
"""A tensor, a sequence of them, or what is left out."""

Converter: TypeAlias = "Callable[[Node], Any]"

C = TypeVar("C", bound=Converter)

MICROSOFT = "com.microsoft"

CONVERTERS: dict[tuple[str, str], Converter] = {}
"""How each operator, by domain and name, is written in Relax."""


class Refused(Exception):  # noqa: N818 - what is refused is a model, not an error of ours
    """A node that has no equivalent; its text goes behind the operator's name."""


def converts(*operators: str, domain: str = "") -> Callable[[C], C]:
    """Register a function as the converter of operators."""

    def register(function: C) -> C:
        CONVERTERS.update({(domain, operator): function for operator in operators})
        return function

    return register


@dataclass(frozen=True)
class Node:
    """One node with its inputs, all of static shape.

    Attributes
    ----------
    operator, domain
        Which operator it is.
    opset
        Version of the domain's operators that the model uses.
    inputs
        What it is applied to; None where an optional input is left out.
    attributes
        Those that the file gives, as Python values.
    outputs
        Whether each of the outputs has a name, as far as the file lists them.
    is_exact
        Whether an extent that is scaled is rounded down as ONNX does it (0.7 of 10, which is less
        than 7 as 0.7 is stored, is 6), not as ONNX Runtime, which multiplies in single precision.
    """

    operator: str
    domain: str
    opset: int
    inputs: Sequence[Value]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: Sequence[bool] = (True,)
    is_exact: bool = False

    def __getitem__(self, index: int) -> Tensor:
        """Return an input that is a tensor."""
        value = self.get(index)
        if value is None:
            raise Refused(f"lacks input {index}")
        return value

    def get(self, index: int) -> Tensor | None:
        """Return an input that may be left out."""
        value = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(value, list):
            raise Refused(f"has a sequence as input {index}, which is not supported")
        return value

    def tensors(self) -> list[Tensor]:
        """Return all inputs."""
        return [self[i] for i in range(len(self.inputs))]

    def sequence(self, index: int) -> list[Any]:
        """Return an input that is a sequence."""
        value = self.inputs[index]
        if not isinstance(value, list):
            raise Refused(f"has no sequence of known length as input {index}")
        return value

    def known(self, index: int, what: str) -> np.ndarray:
        """Return the values of an input, or refuse the node if they depend on data."""
        array = self[index].array
        if array is None:
            raise Refused(f"has a {what} that depends on the data; make it a constant")
        return array

    def ints(self, index: int, what: str) -> list[int]:
        """Return the values of an input of integers."""
        return [int(n) for n in self.known(index, what).reshape(-1)]

    def axes(self, rank: int, since: int, index: int = 1) -> list[int] | None:
        """Return axes counted from the front: an attribute, an input since that opset."""
        if self.opset < since or "axes" in self.attributes:
            axes = self.attribute("axes")
        else:
            axes = None if self.get(index) is None else self.ints(index, "list of axes")
        return None if axes is None else [int(axis) % max(rank, 1) for axis in axes]

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or what it is when the file does not say."""
        return self.attributes.get(name, default)

    def refuse_attributes(self, **expected: Any) -> None:
        """Refuse the node unless attributes have these values or are not given."""
        for name, value in expected.items():
            if self.attribute(name, value) != value:
                raise Refused(f"with {name}={self.attributes[name]!r} is not supported")
