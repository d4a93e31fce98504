"""The bound on what layouts for each part of a network could gain."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.workloads import load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from tools.benchmarks.im2col import by_im2col
from tools.benchmarks.layout_bound import bound, parts_of


def test_the_bound_takes_the_fastest_layout_of_each_part() -> None:
    found = bound({"nchw": np.array([1.0, 4.0, 2.0]), "nhwc": np.array([3.0, 1.0, 2.0])})
    assert found == {
        "layouts_s": {"nchw": 7.0, "nhwc": 6.0},
        "bound_s": 4.0,
        "gain": 1.5,
        "chosen": {"nchw": 2, "nhwc": 1},
    }


@pytest.mark.parametrize("suffix", ["", "+nchw8c+winograd"])
def test_parts_are_the_same_in_each_layout(suffix: str, hardware: Hardware) -> None:
    prepared = prepare_network(load_network(f"resnet_18@r64{suffix}"), hardware)
    parts = parts_of(prepared, hardware.target)
    assert len(parts) == 20  # Convolutions.
    tasks = {task.workload_id: task.weight for task in tasks_of(prepared, hardware.target)}
    assert sum(parts, Counter()) == tasks


def test_a_convolution_by_im2col_is_a_product(hardware: Hardware) -> None:
    direct = load_network("conv2d 1 16 8 8 16 3 pad=1+nhwc")
    prepared = prepare_network(replace(direct, mod=by_im2col(direct.mod)), hardware)
    names = {task.name for task in tasks_of(prepared, hardware.target)}
    assert {"im2col", "matmul"} <= names
    assert not any("conv2d" in name for name in names)
