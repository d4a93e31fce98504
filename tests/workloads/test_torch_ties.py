"""Where equal elements are: PyTorch leaves it open, and what is compared with does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from costlib.workloads.agreement import compare_outputs
from costlib.workloads.signature import TensorSpec
from costlib.workloads.torch_reference import TorchReference
from costlib.workloads.torch_ties import TiesInOrder

X = torch.randint(0, 3, (5, 64), generator=torch.Generator().manual_seed(0))
NAN = X.float().masked_fill(X == 2, torch.nan)


@pytest.mark.parametrize("x", [X, X.float(), NAN])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.topk(9),
        lambda x: x.topk(9, largest=False, sorted=False),
        lambda x: (x > 1).sort(1, descending=True),
        lambda x: (x.gather(1, x.argsort(1)), x.argsort(1)),
        lambda x: x.byte().median(1, keepdim=True),
        lambda x: x.float().median(0),
        lambda x: x.float().kthvalue(30, 1),
        lambda x: x.nanmedian(1),
        lambda x: x.nanmedian(0, keepdim=True),
        lambda x: x.nan_to_num(2).mode(1),
    ],
)
def test_values_stay_and_places_are_in_order(function: Callable[..., Any], x: torch.Tensor) -> None:
    values, _ = function(x)
    with TiesInOrder():
        ours, places = function(x)
    assert ours.dtype == values.dtype
    by_size = (t.float().nan_to_num(9).sort().values for t in (ours, values))
    assert torch.equal(*by_size)
    if ours.shape == (5, 9):
        same = torch.isclose(ours[:, 1:], ours[:, :-1], equal_nan=True)
        assert same.any()
        assert (places[:, 1:] > places[:, :-1])[same].all()


def test_a_nan_is_the_mode_of_nothing_else() -> None:
    nan = torch.nan
    x = torch.tensor([[nan, 2, 1, nan], [3, nan, nan, 3], [nan, nan, nan, nan]])
    with TiesInOrder():
        values, places = x.mode(1)
    assert values.tolist()[:2] == [1, 3]
    assert values[2].isnan()
    assert places.tolist() == [2, 0, 0]


def test_scalars() -> None:
    with TiesInOrder():
        for found in (X[0, 0].topk(1), X[0, 0].kthvalue(1), X[0, 0].median(0), X[0, 0].mode()):
            assert (found[0], found[1]) == (X[0, 0], 0)


def test_a_wrong_place_stays_different() -> None:
    class Best(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.topk(9).indices

    (expected,) = TorchReference(Best())([X.numpy()])
    spec = [TensorSpec(name="y", dtype="int64", shape=(5, 9))]
    worst = np.argsort(X.numpy(), 1, kind="stable")[:, :9]
    best = np.argsort(-X.numpy(), 1, kind="stable")[:, :9]
    assert compare_outputs(spec, [best], [expected])[0].fault is None
    assert "elements differ" in str(compare_outputs(spec, [worst], [expected])[0].fault)
