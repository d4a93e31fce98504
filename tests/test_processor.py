from __future__ import annotations

import ctypes
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace

import pytest

from costlib import processor
from costlib.errors import EnvironmentMismatchError, TargetError
from costlib.hardware import Hardware, find_hardware
from costlib.measure import server
from costlib.tuning.compiled import CompiledNetwork
from costlib.workloads import load_network, prepare_network

V4 = (
    "pni ssse3 fma sse sse2 sse4_1 sse4_2 bmi1 bmi2 avx avx2 avx512f avx512bw avx512cd avx512dq "
    "avx512vl f16c"
)
AMX = "amx_tile amx_int8 amx_bf16"


@pytest.fixture
def shows(monkeypatch: pytest.MonkeyPatch) -> object:
    """Let the processor show these instructions, under the name of none that LLVM knows."""

    def show(flags: str) -> None:
        info = {"model name": "Some Xeon", "cpu family": "6", "model": "167", "flags": flags}
        monkeypatch.setattr(processor, "_cpuinfo", lambda: info)

    return show


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (V4, []),
        (f"{V4} avx512_vnni avx_vnni", ["+avx512vnni", "+avxvnni"]),
        (f"{V4} avx512_bf16 avx512_fp16", ["+avx512bf16", "+avx512fp16"]),
        (f"{V4} {AMX}", ["+amx-bf16", "+amx-int8", "+amx-tile"]),
    ],
)
def test_instructions_beside_a_level_come_from_the_flags(
    flags: str, expected: list[str], shows: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(shows)
    shows(flags)
    found = Hardware.local(num_cores=1)
    target = {"kind": "llvm", "mcpu": "x86-64-v4", "num-cores": 1}
    assert found.target == target | ({"mattr": expected} if expected else {})
    plain = Hardware.local(mcpu="x86-64-v4", num_cores=1)
    assert plain.target == target
    assert (found.hardware_id == plain.hardware_id) == (not expected)
    again = Hardware.model_validate_json(found.model_dump_json())
    assert again.hardware_id == found.hardware_id
    known = processor.llvm_features("x86-64-v4", expected)
    assert {name.removeprefix("+") for name in expected} <= known
    assert found.tvm_target().kind.name == "llvm"


def test_wide_instructions_need_wide_vectors(shows: object) -> None:
    assert callable(shows)
    narrow = " ".join(flag for flag in V4.split() if "512" not in flag)
    shows(f"{narrow} movbe lzcnt avx_vnni avx512_vnni")
    assert Hardware.local().target.get("mattr") == ["+avxvnni"]


def test_a_processor_that_its_name_covers_keeps_its_id(
    shows: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(shows)
    shows(f"{V4} avx512ifma avx512_bf16 avx512vbmi avx512_vbmi2 avx512_vnni avx512_bitalg")
    assert processor.further_instructions("znver4") == []


def test_amx_is_named_beside_a_processor_that_has_it(shows: object) -> None:
    """Permission to use it is asked for where it is."""
    assert callable(shows)
    shows(f"{V4} amx_bf16 amx_tile amx_int8")
    named = ["+amx-bf16", "+amx-int8", "+amx-tile"]
    assert processor.further_instructions("sapphirerapids") == named


def test_a_target_line_may_name_them(shows: object) -> None:
    assert callable(shows)
    shows(f"{V4} avx512_vnni")
    found = find_hardware("llvm -mcpu=x86-64-v4 -mattr=+avx512vnni -num-cores 1")
    assert found == Hardware.local(num_cores=1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("llvm -mcpu=x86-64-v4 -mattr=+avx512bf16", "cannot execute code for 'x86-64-v4 "),
        ("llvm -mcpu=x86-64-v4 -mattr=avx512vnni", "mattr has 'avx512vnni'"),
        ("llvm -mcpu=x86-64-v4 -mattr=+sse2", r"mattr has '\+sse2'"),
        ("llvm -mattr=+avx512vnni", "stands beside -mcpu"),
    ],
)
def test_instructions_that_are_not_here_or_not_known(line: str, said: str, shows: object) -> None:
    assert callable(shows)
    shows(V4)
    with pytest.raises(TargetError, match=said) as error:
        find_hardware(line)
    assert "\n" not in str(error.value)


def test_tiles_need_a_processor_that_has_them(shows: object) -> None:
    assert callable(shows)
    shows(V4)
    processor.allow_tiles({"mcpu": "x86-64-v4"})
    with pytest.raises(EnvironmentMismatchError, match="which this processor lacks"):
        processor.allow_tiles({"mattr": ["+amx-tile"]})


@pytest.mark.parametrize("refused", [0, -1])
def test_linux_is_asked_for_tiles(
    refused: int, shows: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(shows)
    shows(f"{V4} {AMX}")
    asked = []

    def syscall(*numbers: int) -> int:
        asked.append(numbers)
        return refused

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: SimpleNamespace(syscall=syscall))
    if refused:
        with pytest.raises(EnvironmentMismatchError, match="Linux does not let") as error:
            processor.allow_tiles({"mattr": ["+amx-tile"]})
        assert "\n" not in str(error.value)
    else:
        processor.allow_tiles({"mattr": ["+amx-tile"]})
    assert asked == [(158, 0x1023, 18)]


@pytest.mark.skipif("amx_tile" in Path("/proc/cpuinfo").read_text(), reason="AMX is here")
def test_what_uses_tiles_is_refused_where_there_are_none(tmp_path: Path) -> None:
    target = {"kind": "llvm", "mcpu": "x86-64-v4", "mattr": ["+amx-tile"], "num-cores": 1}
    with pytest.raises(EnvironmentMismatchError, match="compiled for AMX"):
        server._Server(Pipe()[0], target)
    network = load_network("softmax 4 4")
    elsewhere = Hardware(kind="cpu", model="Xeon", num_cores=1, target=target, vector_bits=512)
    prepared = prepare_network(network, elsewhere)
    CompiledNetwork.build(prepared, elsewhere).save(tmp_path / "network.so")
    with pytest.raises(EnvironmentMismatchError, match="compiled for AMX"):
        CompiledNetwork.load(tmp_path / "network.so")
