"""PyTorch with the order of equal elements decided, where PyTorch itself leaves it open.

Of equal elements, whose places ``topk``, ``kthvalue``, medians, ``mode`` and ``sort`` return is up
to the kernel. Here they are taken in the order of their places, as the imported networks take them,
so that the places, and what is computed of them, can be compared.
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
    values, places = torch.kthvalue(x, k, dim, keepdim)
    return values, _nth(x, k - 1, dim, keepdim) if x.ndim else places


def _median(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    values, places = torch.median(x, dim, keepdim)
    if not x.ndim:
        return values, places
    middle = _nth(x, (x.shape[dim] - 1) // 2, dim, keepdim)
    return values, torch.where(torch.isnan(values), places, middle)


def _nanmedian(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    values, places = torch.nanmedian(x, dim, keepdim)
    if not x.ndim:
        return values, places
    middle = ((~torch.isnan(x)).sum(dim, keepdim=True) - 1).div(2, rounding_mode="floor")
    order = torch.sort(x, dim=dim, stable=True).indices
    in_order = order.gather(dim, middle.clamp(min=0))
    return values, in_order if keepdim else in_order.squeeze(dim)


def _mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """Take numbers where there are any; whether PyTorch takes a NaN depends on its sorting."""
    values, places = torch.mode(x, dim, keepdim=True)
    if not x.ndim:
        return values, places
    rows, found = x.movedim(dim, -1), values.movedim(dim, -1)
    for place in torch.isnan(rows).any(-1).nonzero().tolist():
        row = rows[tuple(place)]
        if not torch.isnan(row).all():
            found[tuple(place)] = torch.mode(row[~torch.isnan(row)]).values
    places = (x == values).byte().argmax(dim, keepdim=True)
    return tuple(t if keepdim else t.squeeze(dim) for t in (values, places))


def _nth(x: torch.Tensor, place: int, dim: int, keepdim: bool) -> torch.Tensor:
    """Return where the element is that comes at a place in order; NaN comes last."""
    in_order = torch.sort(x, dim=dim, stable=True).indices.narrow(dim, place, 1)
    return in_order if keepdim else in_order.squeeze(dim)


_DECIDED: dict[Any, Callable[..., Any]] = {
    _aten.sort.default: _sort,
    _aten.topk.default: _topk,
    _aten.kthvalue.default: _kthvalue,
    _aten.median.dim: _median,
    _aten.nanmedian.dim: _nanmedian,
    _aten.mode.default: _mode,
}
