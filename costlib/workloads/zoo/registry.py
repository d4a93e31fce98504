"""The catalogue of networks: what a name stands for, and how it is built."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from costlib.errors import InputError
from costlib.workloads.network import InputSpec


@dataclass(frozen=True)
class Size:
    """How large a network's input is: samples at a time, and pixels a side or tokens of each.

    Of a decoder these are the tokens that it has seen before.
    """

    batch: int
    extent: int


Takes = Callable[[Size], tuple[InputSpec, ...]]
"""The inputs of a network of a size."""

_UNITS = {"r": "resolution", "s": "sequence", "p": "past"}


def images(*channels: int) -> Takes:
    """Float images of so many channels, or clips of so many channels and frames."""
    return lambda size: (InputSpec("x", "float32", (size.batch, *channels, *[size.extent] * 2)),)


def tokens(vocabulary: int) -> Takes:
    """Sequences of token ids below ``vocabulary``."""
    return lambda size: (InputSpec("x", "int64", (size.batch, size.extent), vocabulary),)


def token_and_cache(vocabulary: int, layers: int, heads: int, width: int) -> Takes:
    """A token id, and the keys and values of those before it in each layer."""

    def takes(size: Size) -> tuple[InputSpec, ...]:
        shape = (layers, size.batch, heads, size.extent, width)
        cache = (InputSpec(name, "float32", shape) for name in ("keys", "values"))
        return InputSpec("x", "int64", (size.batch, 1), vocabulary), *cache

    return takes


_PICTURE = images(3)


@dataclass(frozen=True)
class NetworkSpec:
    """One entry of the zoo.

    Attributes
    ----------
    name
        What users call it.
    build
        Makes the randomly initialised ``torch.nn.Module`` for a size.
    takes
        Says what the module takes at that size.
    size
        The default size.
    unit
        The letter that stands for the extent in a variant's name: ``r`` (resolution),
        ``s`` (sequence) or ``p`` (past tokens).
    """

    name: str
    build: Callable[[Size], Any]
    takes: Takes = _PICTURE
    size: Size = Size(1, 224)
    unit: str = "r"

    @property
    def dims(self) -> dict[str, str]:
        """Its dimensions: the fields of its size, by what users call them."""
        return {"batch": "batch", _UNITS[self.unit]: "extent"}

    def sized(self, variant: str) -> Size:
        """Parse the part of a name after the ``@``, such as ``b4-r160``.

        Raises
        ------
        InputError
            The variant is not made of a batch and an extent.
        """
        size = self.size
        for piece in filter(None, variant.split("-")):
            match = re.fullmatch(rf"([b{self.unit}])([1-9]\d*)", piece)
            if match is None:
                raise InputError(
                    f"'{piece}' in '{self.name}@{variant}' is no variant of {self.name}; "
                    f"write e.g. {self.name}@b4 or {self.name}@b1-{self.unit}{size.extent}"
                )
            number = int(match[2])
            size = replace(size, **{"batch" if match[1] == "b" else "extent": number})
        return size
