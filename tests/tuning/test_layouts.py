"""In which layouts a network is tuned."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from costlib.errors import DifferentNetworkError, UnsupportedModelError
from costlib.hardware import Hardware, find_hardware
from costlib.hub import Bundle
from costlib.measure.config import MeasureConfig
from costlib.tuning import layouts
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.config import TuneConfig
from costlib.tuning.layouts import Layouts, versions_of
from costlib.tuning.networks import NetworkSet
from costlib.tuning.tune import tune
from costlib.workloads import Network, load_network

X = torch.randn(1, 3, 12, 12)
QUICK = TuneConfig(measure=MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0))


def module() -> nn.Module:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.Flatten()]
    return nn.Sequential(*layers).eval()


def network() -> Network:
    return load_network(module(), example_inputs=(X,))


def names(source: Any, hardware: Hardware, layouts: Layouts = "channels-last") -> list[str]:
    return [found.name for found in NetworkSet.load([source], hardware, layouts=layouts).networks]


def test_channels_are_last_where_nobody_chose_a_layout(hardware: Hardware) -> None:
    assert names(network(), hardware) == ["Sequential+nhwc"]
    assert names(network(), hardware, "given") == ["Sequential"]
    assert names(network(), hardware, "all")[:2] == ["Sequential", "Sequential+nhwc"]


@pytest.mark.parametrize("suffix", ["+nchw8c", "+nhwc"])
def test_a_layout_in_the_name_is_kept(suffix: str, hardware: Hardware) -> None:
    chosen = layouts.in_layout(network(), suffix[1:])
    assert names(chosen, hardware) == [f"Sequential{suffix}"]


@pytest.mark.parametrize("source", ["conv2d 1 16 8 8 16 3", "matmul 8 8 8"])
def test_operators_are_left_as_they_are(source: str, hardware: Hardware) -> None:
    assert names(source, hardware) == [source]


def test_networks_of_16_bits_and_for_a_gpu_are_left_as_they_are(hardware: Hardware) -> None:
    rounded = dataclasses.replace(network(), dtype="bfloat16")
    assert [found.name for found, _ in versions_of(rounded, hardware, "channels-last")] == [
        "Sequential"
    ]
    assert names(network(), find_hardware("cuda:sm_80")) == ["Sequential"]


def test_all_points_of_a_range(bundle: Bundle, hardware: Hardware, tmp_path: Path) -> None:
    original = module()
    batches = {0: torch.export.Dim("batch", min=1, max=3)}
    program = torch.export.export(original, (X.repeat(2, 1, 1, 1),), dynamic_shapes=(batches,))
    result = tune(program, out=tmp_path, trials=6, bundle=bundle, hardware=hardware, config=QUICK)
    assert {one.network[-5:] for one in result.networks} == {"+nhwc"}
    compiled = CompiledNetwork.load(result.ranges[0].library)
    for batch in (1, 2, 3):
        x = torch.randn(batch, *X.shape[1:])
        with torch.no_grad():
            np.testing.assert_allclose(compiled(x), original(x), atol=1e-4)


def test_a_network_that_cannot_be_converted_is_tuned_as_it_was_given(
    hardware: Hardware, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> Network:
        raise UnsupportedModelError("TVM cannot")

    monkeypatch.setattr(layouts, "in_layout", refuse)
    assert names(network(), hardware) == ["Sequential"]
    assert "Sequential is not tried in nhwc: TVM cannot convert it" in caplog.text


def test_tuned_with_channels_last(bundle: Bundle, hardware: Hardware, tmp_path: Path) -> None:
    original = module()
    result = tune(
        original,
        out=tmp_path,
        trials=4,
        bundle=bundle,
        hardware=hardware,
        config=QUICK,
        example_inputs=(X,),
    )
    (tuned,) = result.networks
    assert tuned.network == "Sequential+nhwc"
    assert any(re.search(r"\bNHWC\b", task.title) for task in result.tasks)
    assert tuned.max_abs_error < 1e-4 < tuned.max_abs_output
    with torch.no_grad():
        wanted = original(X)
    np.testing.assert_allclose(CompiledNetwork.load(tuned.library)(X), wanted, atol=1e-4)


def test_a_layout_that_may_be_to_blame_is_named(hardware: Hardware, tmp_path: Path) -> None:
    right = network()
    assert right.reference is not None

    class Other:
        name = "PyTorch"

        def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            return [output + 1 for output in right.reference(inputs)]

        def timed(self, inputs: Sequence[np.ndarray]) -> Any:
            return right.reference.timed(inputs)

    different = dataclasses.replace(right, reference=Other())
    wanted: tuple[tuple[Layouts, bool], ...] = (("channels-last", True), ("given", False))
    for chosen, found in wanted:
        config = TuneConfig(layouts=chosen)
        with pytest.raises(DifferentNetworkError) as caught:
            tune(different, out=tmp_path / chosen, trials=4, bundle="none", config=config)
        assert ("--layouts given leaves its layout" in str(caught.value)) == found
