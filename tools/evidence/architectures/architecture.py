"""What an architecture is: a name, a family, and a way to make a small model of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Example(NamedTuple):
    """A model with random weights and what it is called with.

    Attributes
    ----------
    source
        A module, or an ONNX model, which carries what its inputs are.
    inputs
        A tuple of arguments or a mapping of named ones; ``None`` for an ONNX model.
    """

    source: Any
    inputs: tuple[Any, ...] | Mapping[str, Any] | None = None


class Architecture(NamedTuple):
    """An architecture that may be tried.

    Attributes
    ----------
    package, model
        Whose it is, and what it is called there.
    family
        In words.
    make
        Makes a small model of it; imports the package.
    """

    package: str
    model: str
    family: str
    make: Callable[[], Example]

    @property
    def name(self) -> str:
        """Of its record."""
        return f"{self.package}.{self.model}"
