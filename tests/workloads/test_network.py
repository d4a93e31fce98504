from __future__ import annotations

import numpy as np
import torch

from costlib.workloads import InputSpec, Network, TorchReference

INPUTS = (
    InputSpec("ids", "int64", (50,), 7),
    InputSpec("x", "float32", (4, 5)),
    InputSpec("mask", "bool", (3,)),
)


def test_random_inputs_are_reproducible_and_in_range():
    network = Network("n", None, INPUTS)
    ids, x, mask = network.random_inputs(3)
    again = network.random_inputs(3)
    assert [array.dtype for array in (ids, x, mask)] == ["int64", "float32", "bool"]
    assert ids.max() == 6
    assert ids.min() == 0
    assert (x != 0).all()
    assert mask.all()
    assert all(np.array_equal(a, b) for a, b in zip((ids, x, mask), again, strict=True))
    assert not np.array_equal(x, network.random_inputs(4)[1])


def test_reference_returns_every_output():
    class Two(torch.nn.Module):
        def forward(self, x):
            return x + 1, x * 2

    reference = TorchReference(Two().eval())
    one, two = reference([np.ones(3, "float32")])
    assert one.tolist() == two.tolist() == [2, 2, 2]
    assert len(reference.timed([np.ones(3, "float32")])()) == 2
