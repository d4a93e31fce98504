"""Networks: a Relax module together with what it takes to run it and its PyTorch original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INTEGER_LIMIT = 2
"""Random integers lie below this where an input does not say more: every table has two rows."""


@dataclass(frozen=True)
class InputSpec:
    """One input of a network.

    Attributes
    ----------
    name
        Its name in the module.
    dtype
        As numpy spells it, e.g. ``"float32"``.
    shape
        Static extents.
    high
        Exclusive upper bound of the values, for integers such as token ids.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    high: int = INTEGER_LIMIT

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Draw an array of this dtype and shape: normal floats, uniform integers, booleans."""
        dtype = np.dtype(self.dtype)
        if dtype.kind == "f":
            return rng.standard_normal(self.shape).astype(dtype)
        if dtype.kind == "b":
            return np.ones(self.shape, dtype)
        return rng.integers(0, self.high, self.shape, dtype)


@dataclass(frozen=True)
class TorchReference:
    """The PyTorch module that a network was exported from.

    Attributes
    ----------
    module
        A ``torch.nn.Module`` in evaluation mode that takes the network's inputs in order.
    """

    module: Any

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return PyTorch's own outputs, in the network's order."""
        outputs = self.timed(inputs)()
        outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
        return [output.numpy() for output in outputs]

    def timed(self, inputs: Sequence[np.ndarray]) -> Callable[[], Any]:
        """Return a call of the module on ``inputs`` with nothing around it that takes time."""
        import torch

        tensors = [torch.from_numpy(np.ascontiguousarray(array)) for array in inputs]
        module = self.module

        def call() -> Any:
            with torch.inference_mode():
                return module(*tensors)

        return call


@dataclass(frozen=True)
class Network:
    """A network as imported: before the inference pipeline, parameters bound as constants.

    Attributes
    ----------
    name
        The zoo's name, the operator's spec, or the stem of the file.
    mod
        A Relax ``IRModule`` whose ``main`` takes exactly ``inputs``.
    inputs
        What ``main`` takes, in order.
    reference
        PyTorch's version of the network, where there is one.
    """

    name: str
    mod: Any = field(repr=False, compare=False)
    inputs: tuple[InputSpec, ...]
    reference: TorchReference | None = field(default=None, repr=False, compare=False)

    def random_inputs(self, seed: int) -> list[np.ndarray]:
        """Draw one array for each input; the same seed gives the same arrays."""
        rng = np.random.default_rng(seed)
        return [spec.random(rng) for spec in self.inputs]
