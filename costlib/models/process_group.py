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
    import torch.distributed as group

    return group.get_world_size() if _together() else 1


def rank() -> int:
    """Return the number of this process, from 0."""
    import torch.distributed as group

    return group.get_rank() if _together() else 0


def summed(values: Any) -> Floats:
    """Add up an array (float64, any shape) over the processes."""
    import torch
    import torch.distributed as group

    total = torch.from_numpy(np.array(values, "float64"))
    if _together():
        group.all_reduce(total)
    return np.asarray(total.numpy())


def most(value: int) -> int:
    """Return the largest of the processes' values."""
    import torch
    import torch.distributed as group

    found = torch.tensor(value)
    if _together():
        group.all_reduce(found, group.ReduceOp.MAX)
    return int(found)


def average_gradients(parameters: Iterable[Any]) -> None:
    """Replace the gradients of torch parameters by their means over the processes."""
    import torch
    import torch.distributed as group

    if not _together():
        return
    gradients = [parameter.grad for parameter in parameters]
    flat = torch.cat([gradient.ravel() for gradient in gradients])
    group.all_reduce(flat)
    parts = (flat / group.get_world_size()).split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def _together() -> bool:
    import torch.distributed as group

    return bool(group.is_available() and group.is_initialized())
