"""PyTorch's tensors as numpy arrays and back, bfloat16 included, which numpy has from ml_dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """Return the array of a tensor, without a copy where it is possible."""
    import ml_dtypes
    import torch

    tensor = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        bits: np.ndarray = tensor.view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    array: np.ndarray = tensor.numpy()
    return array


def to_torch(array: Any) -> torch.Tensor:
    """Return the tensor of an array, without a copy where it is possible."""
    import torch

    array = np.asarray(array)
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = np.array(array, order="C")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
