"""A network in the layouts that it is tuned in."""

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

from costlib.collecting import planned
from costlib.data.dataset import Dataset
from costlib.data.task_tables import register_workloads
from costlib.errors import DifferentNetworkError, InputError, UnsupportedModelError
from costlib.hardware import Hardware, find_hardware
from costlib.hub import Bundle
from costlib.measure.config import MeasureConfig
from costlib.tuning.check import check
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.config import TuneConfig
from costlib.tuning.networks import NetworkSet
from costlib.tuning.tune import tune
from costlib.workloads import Network, extract_tasks, in_layouts, load_network
from costlib.workloads.layout import best_block
from costlib.workloads.layout_choice import Layouts

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
    chosen = in_layouts.in_layout(network(), suffix[1:])
    assert names(chosen, hardware) == [f"Sequential{suffix}"]


@pytest.mark.parametrize("source", ["conv2d 1 16 8 8 16 3", "matmul 8 8 8"])
def test_operators_are_left_as_they_are(source: str, hardware: Hardware) -> None:
    assert names(source, hardware) == [source]


def test_networks_of_16_bits_and_for_a_gpu_are_left_as_they_are(hardware: Hardware) -> None:
    rounded = dataclasses.replace(network(), dtype="bfloat16")
    assert [
        found.name for found, _ in in_layouts.in_layouts(rounded, hardware, "channels-last")
    ] == ["Sequential"]
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

    monkeypatch.setattr(in_layouts, "in_layout", refuse)
    assert names(network(), hardware) == ["Sequential"]
    assert "Sequential is not tried in nhwc: TVM cannot convert it" in caplog.text


def test_tasks_in_other_layouts(hardware: Hardware) -> None:
    def ids(source: Network, layouts: Layouts = "given") -> list[str]:
        tasks = extract_tasks(source, hardware, layouts=layouts)
        assert {task.source for task in tasks} <= {"Sequential"} | {
            f"Sequential+{layout}" for layout in ("nhwc", best_block(hardware))
        }
        return [task.workload_id for task in tasks]

    given, last = ids(network()), ids(in_layouts.in_layout(network(), "nhwc"))
    assert ids(network(), "channels-last") == last != given
    everything = ids(network(), "all")
    assert everything[: len(given)] == given
    assert set(given) | set(last) <= set(everything)
    assert len(set(everything)) == len(everything)


def test_checked_with_channels_last(hardware: Hardware) -> None:
    for layouts, name in (("channels-last", "Sequential+nhwc"), ("given", "Sequential")):
        found = check(module(), example_inputs=(X,), hardware=hardware, layouts=layouts)
        assert (found.network, found.status) == (name, "right")
        tasks = extract_tasks(network(), hardware, layouts=layouts)
        assert {task.workload_id for task in found.tasks} == {t.workload_id for t in tasks}


def test_a_version_that_differs_is_what_came_of_a_check(
    hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(given: Network, layout: str) -> Network:
        other = network().mod  # With other weights.
        return dataclasses.replace(given, name=f"{given.name}+{layout}", mod=other)

    monkeypatch.setattr(in_layouts, "in_layout", wrong)
    found = check(network(), hardware=hardware, layouts="all")
    assert (found.network, found.status) == ("Sequential+nhwc", "different")
    assert check(network(), hardware=hardware, layouts="given").status == "right"


def test_ranges_are_not_checked_in_all_layouts(hardware: Hardware) -> None:
    batches = {0: torch.export.Dim("batch", min=1, max=3)}
    program = torch.export.export(module(), (X.repeat(2, 1, 1, 1),), dynamic_shapes=(batches,))
    with pytest.raises(InputError, match="--layouts all takes networks of fixed shapes"):
        check(program, hardware=hardware, layouts="all")
    assert check(program, hardware=hardware).status == "right"


def test_a_collection_goes_on_with_the_tasks_of_its_layout(
    hardware: Hardware, tmp_path: Path
) -> None:
    dataset = Dataset.create(tmp_path)
    tasks = extract_tasks(network(), hardware, layouts="channels-last")
    register_workloads(dataset, tasks, {task.workload_id for task in tasks})
    noted = planned._noted("Sequential", dataset, hardware, "channels-last")
    assert [task.workload_id for task in noted] == [task.workload_id for task in tasks]
    assert planned._noted("Sequential", dataset, hardware, "given") == []
    assert planned._noted("Sequential", dataset, hardware, "all") == []


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
        assert ("try it without channels last (--layouts given)" in str(caught.value)) == found
