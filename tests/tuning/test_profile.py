from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from costlib.arrays import Floats
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.report.timeline import timeline_figure
from costlib.report.units import MILLISECONDS
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.profile import (
    PROFILE,
    NetworkProfile,
    RunProfile,
    profile_network,
    profile_run,
    read_profile,
)
from costlib.tuning.traces import quiet_s
from costlib.tvm_compat import networks
from costlib.workloads import extract_tasks, load_network, prepare_network

SOURCE = "dense 64 64 64 bias=1 relu=1"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, hardware: Hardware) -> Path:
    path = tmp_path_factory.mktemp("profile") / "network.so"
    CompiledNetwork.build(prepare_network(load_network(SOURCE), hardware), hardware).save(path)
    return path


@pytest.fixture(scope="module")
def profile(library: Path, hardware: Hardware) -> NetworkProfile:
    (task,) = extract_tasks(SOURCE, hardware)
    with Measurer(hardware) as measurer:
        return profile_network("dense", library, measurer, {task.workload_id: 1e-6})


def test_the_parts_make_up_the_whole(profile: NetworkProfile) -> None:
    parts = profile.tasks_s + profile.dispatch_s + profile.unexplained_s
    assert math.isclose(parts, profile.network_s)
    assert profile.tasks_s == 1e-6
    assert profile.dispatch_s > 0 and profile.memory_bytes_per_s > 0


def test_a_network_in_bfloat16(tmp_path: Path, hardware: Hardware) -> None:
    path, source = tmp_path / "network.so", f"{SOURCE}+bf16"
    CompiledNetwork.build(prepare_network(load_network(source), hardware), hardware).save(path)
    with Measurer(hardware) as measurer:
        found = profile_network("dense", path, measurer, {})
    assert found.kernels and all(kernel.latency_s > 0 for kernel in found.kernels)


def test_kernels_are_the_tasks(profile: NetworkProfile, hardware: Hardware) -> None:
    (task,) = extract_tasks(SOURCE, hardware)
    (kernel,) = profile.kernels
    assert (kernel.name, kernel.workload_id) == (task.title, task.workload_id)
    assert kernel.flops == task.flops
    assert kernel.nbytes == 4 * (64 * 64 * 3 + 64)
    assert kernel.latency_s > 0 and kernel.tuned_s == 1e-6


def test_kernels_are_drawn_one_after_the_other(profile: NetworkProfile) -> None:
    (axes,) = timeline_figure(profile, MILLISECONDS).axes
    drawn = sum(bar.get_width() for bar in axes.patches)  # type: ignore[attr-defined]
    assert drawn == pytest.approx(profile.kernels[0].latency_s * 1e3)


def test_what_was_noted_is_read_back(profile: NetworkProfile, tmp_path: Path) -> None:
    assert read_profile(tmp_path).networks == ()
    kept = RunProfile(networks=(profile,))
    (tmp_path / PROFILE).write_text(kept.model_dump_json())
    assert read_profile(tmp_path) == kept
    (tmp_path / PROFILE).write_text("{}")
    assert read_profile(tmp_path).networks == ()


def test_a_library_that_tells_nothing(
    tmp_path: Path, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(networks, "with_direct_calls", lambda mod, *_: mod)
    old = tmp_path / "network.so"
    prepared = prepare_network(load_network(SOURCE), hardware)
    CompiledNetwork.build(prepared, hardware).save(old)
    with Measurer(hardware) as measurer, pytest.raises(InputError, match="does not tell"):
        profile_network("old", old, measurer, {})


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no finished run"):
        profile_run(tmp_path)


@given(arrays("float64", (20, 3), elements=st.floats(1e-6, 1e-3)))
def test_disturbed_calls_do_not_count(times: Floats) -> None:
    disturbed = times.copy()
    disturbed[5:] += 1.0
    calm = quiet_s(disturbed)
    assert calm.sum() < 1.0
    assert np.all(times[:5].min(0) <= calm) and np.all(calm <= times[:5].max(0))
