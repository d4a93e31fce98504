"""PyTorch with the order of equal elements decided, where PyTorch itself leaves it open.

Of equal elements, whose places ``topk``, ``kthvalue``, ``median`` and ``sort`` return is up to the
kernel. Here they are taken in the order of their places, as the imported networks take them, so
that the places, and what is computed of them, can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten


class TiesInOrder(TorchDispatchMode):  # type: ignore[misc]
    """A context in which equal elements keep their order."""

    supports_higher_order_operators: ClassVar[bool] = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operator, or what decides for it."""
        return _DECIDED.get(func, func)(*args, **(kwargs or {}))


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if not x.ndim:
        return torch.topk(x, k, dim, largest, sorted)
    values, places = torch.sort(x, dim=dim, descending=largest, stable=True)
    return values.narrow(dim, 0, k).clone(), places.narrow(dim, 0, k).clone()


def _kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    return _nth(torch.kthvalue(x, k, dim, keepdim), x, k - 1, dim, keepdim)


def _median(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    middle = (x.shape[dim] - 1) // 2 if x.ndim else 0
    return _nth(torch.median(x, dim, keepdim), x, middle, dim, keepdim)


def _nth(found: Any, x: torch.Tensor, place: int, dim: int, keepdim: bool) -> Any:
    """Take the place from those in order; NaN, which the median prefers, stays where it is."""
    values, places = found
    if not x.ndim:
        return values, places
    in_order = torch.sort(x, dim=dim, stable=True).indices.narrow(dim, place, 1)
    in_order = in_order if keepdim else in_order.squeeze(dim)
    return values, torch.where(torch.isnan(values), places, in_order)


_DECIDED: dict[Any, Callable[..., Any]] = {
    _aten.sort.default: _sort,
    _aten.topk.default: _topk,
    _aten.kthvalue.default: _kthvalue,
    _aten.median.dim: _median,
}
