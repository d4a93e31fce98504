"""Tensors on their way into a compiled network and out of it: PyTorch's, numpy's, TVM's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from costlib.tvm_compat import tvm
from costlib.workloads.ranges.table import padded_to
from costlib.workloads.signature import TensorSpec

_NOT_SHARED = (RuntimeError, BufferError, TypeError, ValueError)
"""What DLPack raises where memory cannot be shared."""


@dataclass(frozen=True)
class Given:
    """A tensor that a network is called with.

    Attributes
    ----------
    value
        PyTorch's tensor or numpy's array.
    spec
        What it is, under the name that the network has for it.
    """

    value: Any
    spec: TensorSpec

    @classmethod
    def of(cls, value: Any, wanted: TensorSpec) -> Self:
        """Take whatever can be made a tensor; a list has the dtype that is wanted."""
        if _is_torch(value):
            value = value.detach().cpu().contiguous()
            dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
        else:
            if not hasattr(value, "dtype"):
                value = np.asarray(value, wanted.dtype)
            elif not isinstance(value, np.ndarray):
                value = np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
            dtype, shape = value.dtype.name, value.shape
        return cls(value, TensorSpec(name=wanted.name, dtype=dtype, shape=shape))

    @property
    def is_torch(self) -> bool:
        """Whether it is PyTorch's."""
        return _is_torch(self.value)

    def tensor(self, shape: Sequence[int] | None = None) -> Any:
        """Return it as TVM's, in the same memory if that is possible; padded to a larger shape."""
        value = self.value
        if shape is not None and tuple(shape) != self.spec.shape:
            value = padded_to(self._numpy(), shape)
        try:
            return tvm.runtime.from_dlpack(value)
        except _NOT_SHARED:
            array = self._numpy() if value is self.value else value
            return tvm.runtime.tensor(np.array(array, order="C"))

    def _numpy(self) -> np.ndarray:
        if self.is_torch:
            from costlib.workloads.torch_arrays import to_numpy

            return to_numpy(self.value)
        found: np.ndarray = self.value
        return found


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def copied(tensor: Any) -> Any:
    """Copy a tensor of TVM's."""
    return tvm.runtime.tensor(tensor.numpy())


def as_numpy(tensor: Any) -> np.ndarray:
    """Return a tensor of TVM's as numpy's, in the same memory if that is possible."""
    try:
        return np.from_dlpack(tensor)
    except _NOT_SHARED:
        array: np.ndarray = tensor.numpy()
        return array


def as_torch(tensor: Any) -> Any:
    """Return a tensor of TVM's as PyTorch's, in the same memory."""
    import torch

    return torch.from_dlpack(tensor)


def cropped_to(tensor: Any, shape: Sequence[int | None]) -> Any:
    """Return the first elements along each axis, as many as a shape has, in memory of their own."""
    if tuple(tensor.shape) == tuple(shape):
        return tensor
    first = tensor[tuple(map(slice, shape))]
    return first.contiguous() if _is_torch(first) else np.ascontiguousarray(first)
