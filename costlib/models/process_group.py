"""What processes that train one model together agree on, over ``torch.distributed``.

Each trains on tasks of its own; what they do here makes them one model. In a process that is alone
these functions change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from costlib.arrays import Floats


def size() -> int:
    """Return how many processes train together."""
    group = _group()
    return group.get_world_size() if group else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    group = _group()
    return group.get_rank() if group else 0


def summed(values: Any) -> Floats:
    """Add up an array (float64, any shape) over the processes."""
    return np.asarray(_reduced(np.array(values, "float64"), "SUM"))


def most(value: int) -> int:
    """Return the largest of the processes' values."""
    return int(_reduced(np.array(value), "MAX"))


def average_gradients(parameters: Iterable[Any]) -> None:
    """Replace the gradients of torch parameters by their means over the processes."""
    import torch

    if (group := _group()) is None:
        return
    gradients = [parameter.grad for parameter in parameters]
    flat = torch.cat([gradient.ravel() for gradient in gradients])
    group.all_reduce(flat)
    parts = (flat / group.get_world_size()).split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def _reduced(values: Any, operation: str) -> Any:
    import torch

    if group := _group():
        group.all_reduce(torch.from_numpy(values), getattr(group.ReduceOp, operation))
    return values


def _group() -> Any:
    """Return ``torch.distributed`` where processes train together, else ``None``."""
    import torch.distributed as group

    return group if group.is_available() and group.is_initialized() else None
