from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from costlib import hardware as hardware_module
from costlib.errors import TargetError
from costlib.hardware import Hardware, find_hardware, make_target
from costlib.processor import runs_here
from costlib.tvm_compat import tvm


def test_local_names_this_machine(hardware: Hardware) -> None:
    assert hardware.kind == "cpu"
    assert hardware.num_cores == len(os.sched_getaffinity(0))
    assert hardware.target["num-cores"] == hardware.num_cores
    assert hardware.vector_bits in {128, 256, 512}
    assert hardware == Hardware.local()
    assert hardware.tvm_target().kind.name == "llvm"


def test_other_instructions_are_another_hardware(hardware: Hardware) -> None:
    base = Hardware.local(mcpu="x86-64-v2")
    assert base.vector_bits == 128
    assert base.hardware_id != hardware.hardware_id
    assert "x86-64-v2" in base.hardware_id


def test_other_cores_are_another_hardware(hardware: Hardware) -> None:
    single = Hardware.local(num_cores=1)
    assert single.num_cores == 1
    if hardware.num_cores > 1:
        assert single.hardware_id != hardware.hardware_id


def test_round_trip_keeps_the_id(hardware: Hardware) -> None:
    again = Hardware.model_validate_json(hardware.model_dump_json())
    assert again.hardware_id == hardware.hardware_id


@given(st.text(max_size=30), st.integers(1, 256))
def test_ids_are_fit_for_folder_names(model: str, cores: int) -> None:
    found = Hardware(kind="cpu", model=model, num_cores=cores, target={}, vector_bits=128)
    assert set(found.hardware_id) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize(
    "changes",
    [
        {"num_cores": -1},
        {"vector_bits": 2**70},
        {"cache_bytes": (-1,)},
        {"target": {"mcpu": {}}},
        {"target": {"arch": 80}},
        {"target": {"mattr": "+avx512vnni"}},
        {"target": {"mattr": [1]}},
    ],
)
def test_what_no_hardware_is(hardware: Hardware, changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Hardware.model_validate(hardware.model_dump() | changes)


@pytest.mark.parametrize("cores", [-1, 10_000])
def test_cores_that_are_not_there(cores: int) -> None:
    with pytest.raises(TargetError, match="this machine has"):
        Hardware.local(num_cores=cores)


def test_processor_that_llvm_does_not_know() -> None:
    with pytest.raises(TargetError, match="no processor 'pentium9'"):
        Hardware.local(mcpu="pentium9")


def test_instructions_this_machine_lacks() -> None:
    lacking = [c for c in ("x86-64-v4", "diamondrapids") if not runs_here(c)]
    if not lacking:
        pytest.skip("this machine runs everything")
    with pytest.raises(TargetError, match="cannot execute"):
        Hardware.local(mcpu=lacking[0])


@pytest.mark.parametrize("kind", ["no-such-kind", "vulkan"])
def test_target_this_tvm_cannot_build_for(kind: str) -> None:
    with pytest.raises(TargetError) as error:
        make_target({"kind": kind})
    assert "\n" not in str(error.value)


def test_a_gpu_that_is_not_here_is_described_by_its_architecture() -> None:
    gpu = find_hardware("cuda:sm_90")
    assert gpu == Hardware.cuda("sm_90")
    assert gpu.hardware_id.startswith("cuda-sm-90-")
    target = gpu.tvm_target()
    assert (target.kind.name, target.arch) == ("cuda", "sm_90")
    assert int(target.max_threads_per_block) == 1024
    assert gpu.hardware_id != Hardware.cuda("sm_80").hardware_id


def test_a_local_gpu_is_described_by_what_it_says_of_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device = SimpleNamespace(
        exist=True,
        compute_version="9.0",
        device_name="NVIDIA H200",
        multi_processor_count=132,
        max_shared_memory_per_block=49152,
        l2_cache_size_bytes=60 << 20,
    )
    monkeypatch.setattr(tvm, "cuda", lambda _: device)
    gpu = find_hardware("cuda")
    assert gpu.hardware_id.startswith("nvidia-h200-sm-90-132c-")
    assert gpu.cache_bytes == (49152, 60 << 20)


def test_no_gpu_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tvm, "cuda", lambda _: SimpleNamespace(exist=False))
    with pytest.raises(TargetError, match="no CUDA device here"):
        find_hardware("cuda")


@pytest.mark.parametrize(
    ("spec", "name", "features"),
    [
        ("aarch64", "aarch64-neon-4c-40113722", ["+neon"]),
        ("aarch64+dotprod", "aarch64-neon-dotprod-4c-f56caa5e", ["+neon", "+dotprod"]),
        ("aarch64+sve+dotprod", "aarch64-neon-dotprod-sve-4c-b2dabdd9", None),
        ("aarch64+dotprod+sve", "aarch64-neon-dotprod-sve-4c-b2dabdd9", None),
    ],
)
def test_arm_processors_need_not_be_here(spec: str, name: str, features: list[str] | None) -> None:
    board = find_hardware(spec)
    assert (board.hardware_id, board.family, board.vector_bits) == (name, "aarch64", 128)
    assert features is None or board.target["mattr"] == features
    target = board.tvm_target()
    assert "arm_cpu" in target.keys and target.features.has_dotprod == ("dotprod" in spec)
    assert find_hardware(spec, num_cores=2).hardware_id != name


def test_sve_of_a_known_width_is_another_hardware() -> None:
    wide, unknown = find_hardware("aarch64+sve256"), find_hardware("aarch64+sve")
    assert (wide.vector_bits, unknown.vector_bits) == (256, 128)
    assert wide.target["mattr"] == unknown.target["mattr"] == ["+neon", "+sve"]
    assert wide.hardware_id != unknown.hardware_id
    assert find_hardware("aarch64+sve512+sve+sve256").vector_bits == 512


def test_an_arm_machine_is_what_it_is_described_as(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware_module.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(hardware_module, "best_mcpu", lambda: "cortex-a76")
    here = Hardware.local(num_cores=1)
    described = Hardware.aarch64(mcpu="cortex-a76", num_cores=1)
    assert (here.family, here.target) == ("aarch64", described.target)
    assert (here.vector_bits, here.num_cores) == (128, 1)


def test_an_arm_processor_by_its_name() -> None:
    board = find_hardware("aarch64", mcpu="cortex-a76", num_cores=8)
    assert board.hardware_id.startswith("aarch64-cortex-a76-8c-")
    assert board.tvm_target().features.has_dotprod
    with pytest.raises(TargetError, match="no processor 'skylake'"):
        find_hardware("aarch64", mcpu="skylake")


@pytest.mark.parametrize("spec", ["cpu", "aarch64", "cuda:sm_90"])
def test_a_simulated_device_is_another_hardware_of_the_same_family(spec: str) -> None:
    real = find_hardware(spec)
    made_up = real.simulated()
    assert made_up.hardware_id.startswith("simulated-")
    assert made_up.is_simulated and not real.is_simulated
    assert (made_up.family, made_up.target) == (real.family, real.target)
    assert Hardware.model_validate_json(made_up.model_dump_json()).is_simulated


@pytest.mark.parametrize(
    "spec",
    [
        "aarch64+",
        "aarch64+avx",
        "aarch64+sve128",
        "aarch64:sve",
        "arm",
        "",
        "gpu",
        "cpu:x",
        "cuda:",
        "cuda:80",
        "cuda:sm_",
        "CUDA",
    ],
)
def test_hardware_that_does_not_exist(spec: str) -> None:
    with pytest.raises(TargetError) as error:
        find_hardware(spec)
    assert "\n" not in str(error.value)


def test_a_gpu_has_no_choice_of_processor_or_cores() -> None:
    with pytest.raises(TargetError, match="not for 'cuda:sm_80'"):
        find_hardware("cuda:sm_80", num_cores=2)


def test_find_hardware_takes_the_options_of_a_cpu() -> None:
    found = find_hardware("cpu", mcpu="x86-64-v2", num_cores=1)
    assert found == Hardware.local(mcpu="x86-64-v2", num_cores=1)
