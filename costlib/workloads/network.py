"""Networks: a Relax module together with what it takes to run it and its PyTorch original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from costlib.workloads.folding import coarsest_dtype
from costlib.workloads.half_precision import HalfFormat
from costlib.workloads.signature import Signature, TensorSpec, flat_signature
from costlib.workloads.small_weights import WeightFormat

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
        import ml_dtypes  # Which teaches numpy bfloat16.

        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        if "float" in self.dtype:
            return rng.standard_normal(self.shape).astype(dtype)
        if dtype.kind == "b":
            return np.ones(self.shape, dtype)
        return rng.integers(0, self.high, self.shape, dtype)


class Reference(Protocol):
    """The original of a network."""

    @property
    def name(self) -> str:
        """What it is called, e.g. ``PyTorch``."""

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return its outputs for these inputs, and its state after the call."""

    def timed(self, inputs: Sequence[np.ndarray]) -> Callable[[], Any]:
        """Return a call of it with nothing around it that takes time."""


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
        The original version of the network, where there is one.
    signature
        How it is called; with its inputs in order, if it is not given.
    state
        What the network keeps from call to call, as it is at first; ``main`` takes it after the
        inputs and returns it after the outputs.
    examples
        Inputs that came with it, if any did.
    weights
        In how many bits the weights of its products are kept once it is prepared; as they are by
        default.
    dtype
        What its products multiply once it is prepared; what they do by default.
    is_operator
        Whether it is a single operator, whose spec says what it takes.
    """

    name: str
    mod: Any = field(repr=False, compare=False)
    inputs: tuple[InputSpec, ...]
    reference: Reference | None = field(default=None, repr=False, compare=False)
    signature: Signature | None = field(default=None, repr=False)
    state: tuple[np.ndarray, ...] = field(default=(), repr=False, compare=False)
    examples: tuple[np.ndarray, ...] = field(default=(), repr=False, compare=False)
    weights: WeightFormat | None = None
    dtype: HalfFormat | None = None
    is_operator: bool = False

    @property
    def is_rounded(self) -> bool:
        """Whether it is to be rounded once it is prepared, which its original is not."""
        return self.weights is not None or self.dtype is not None

    @cached_property
    def precision(self) -> str:
        """The dtype with the fewest digits that it computes in, whatever it takes and returns."""
        return self.dtype or coarsest_dtype(self.mod)

    @cached_property
    def interface(self) -> Signature:
        """How the network is called, and what it returns."""
        if self.signature is not None:
            return self.signature
        result = self.mod["main"].ret_ty
        parts = result.fields if hasattr(result, "fields") else [result]
        outputs = [
            TensorSpec(
                name=f"output{i}", dtype=str(part.dtype), shape=tuple(int(n) for n in part.shape)
            )
            for i, part in enumerate(parts)
        ]
        inputs = [TensorSpec(name=s.name, dtype=s.dtype, shape=s.shape) for s in self.inputs]
        return flat_signature(inputs, outputs)

    def random_inputs(self, seed: int) -> list[np.ndarray]:
        """Draw one array for each input; the same seed gives the same arrays."""
        rng = np.random.default_rng(seed)
        return [spec.random(rng) for spec in self.inputs]
