"""Networks for ARM64 compute under QEMU what their originals do here."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cross_tools import TRIPLE, needs_emulator

from costlib.errors import EnvironmentMismatchError, MeasureError
from costlib.hardware import Hardware, find_hardware
from costlib.measure import emulator
from costlib.measure.emulator import EmulatedNetwork, what_is_missing
from costlib.space.design_space import DesignSpace
from costlib.tuning.library import NetworkLibrary
from costlib.tvm_compat import ms, tvm
from costlib.tvm_compat.api import commit_program
from costlib.tvm_compat.straight_line import Call, Line
from costlib.workloads import extract_tasks, load_network, prepare_network
from costlib.workloads.extraction import tasks_of

SEVERAL = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((4, 3), "int8")):
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, (4, 3))
            c = R.add(R.astype(y, "float32"), R.const(0.5, "float32"))
            d = R.greater(b, c)
            R.output(a, b, d)
        return (b, d, x, a)
"""


def emulated(source: Any, board: Hardware, folder: Path, database: Any = None) -> EmulatedNetwork:
    prepared = prepare_network(load_network(source), board)
    library = NetworkLibrary.build(prepared, board, database)
    assert library.direct is not None
    return EmulatedNetwork(library.direct, library.save_object, library.triple, folder)


def with_programs(source: str, board: Hardware) -> Any:
    """A random program for each task of a network."""
    database = ms.database.MemoryDatabase()
    for task in tasks_of(prepare_network(load_network(source), board), board.target):
        schedule = next(s for _, s in DesignSpace(task).sample(0) if s is not None)
        commit_program(database, task.mod, task.tvm_target(), 1e-3, schedule)
    return database


@needs_emulator
@pytest.mark.parametrize(
    ("spec", "is_tuned"),
    [
        ("aarch64", False),
        ("aarch64", True),
        ("aarch64+dotprod", True),
        ("aarch64+sve", True),
        ("aarch64+sve256", True),
    ],
)
def test_a_network_with_constants(spec: str, is_tuned: bool, tmp_path: Path) -> None:
    source, board = "dense 24 40 32 bias=1 relu=1", find_hardware(spec)
    network = load_network(source)
    database = with_programs(source, board) if is_tuned else None
    inputs = network.random_inputs(1)
    (found,) = emulated(source, board, tmp_path, database)(inputs)
    assert network.reference is not None
    (expected,) = network.reference(inputs)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, atol=1e-5)


PACKED = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True, private=True)
    def packed(
        A: T.Buffer((16, 32), "int8"),
        B: T.Buffer((8, 8, 4, 4), "int8"),
        C: T.Buffer((16, 8, 4), "int32"),
    ):
        T.func_attr({"tirx.noalias": True})
        for i, jo, ji, ko, ki in T.grid(16, 8, 4, 8, 4):
            with T.sblock("product"):
                vi, vjo, vji, vko, vki = T.axis.remap("SSSRR", [i, jo, ji, ko, ki])
                with T.init():
                    C[vi, vjo, vji] = 0
                C[vi, vjo, vji] = C[vi, vjo, vji] + T.cast(A[vi, vko * 4 + vki], "int32") * T.cast(
                    B[vjo, vko, vji, vki], "int32"
                )
    @R.function
    def main(a: R.Tensor((16, 32), "int8"), b: R.Tensor((8, 8, 4, 4), "int8")):
        with R.dataflow():
            c = R.call_tir(Module.packed, (a, b), R.Tensor((16, 8, 4), "int32"))
            R.output(c)
        return c
"""


@needs_emulator
@pytest.mark.parametrize(
    ("spec", "instruction", "assembly"),
    [("aarch64", "neon", "smull"), ("aarch64+dotprod", "sdot", "sdot")],
)
def test_products_of_bytes_use_the_processors_instruction(
    spec: str, instruction: str, assembly: str, tmp_path: Path
) -> None:
    board, module = find_hardware(spec), tvm.script.from_source(PACKED)
    (task,) = tasks_of(prepare_network(load_network(module), board), board.target)
    space = DesignSpace(task)
    name = f"dot_4x4_i8i8s32_{instruction}"
    assert all(name in str(sketch.instructions) for sketch in space.sketches)
    schedule = next(s for _, s in space.sample(0) if s is not None)
    built = tvm.build(schedule.mod, target=task.tvm_target())
    assert assembly in built.inspect_source("asm")
    database = ms.database.MemoryDatabase()
    commit_program(database, task.mod, task.tvm_target(), 1e-3, schedule)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, shape).astype("int8") for shape in ((16, 32), (8, 8, 4, 4)))
    (found,) = emulated(module, board, tmp_path, database)([a, b])
    expected = np.einsum("iok,jolk->ijl", a.reshape(16, 8, 4).astype("int64"), b.astype("int64"))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("spec", "registers"), [("aarch64+sve", r"fmla\tv\d"), ("aarch64+sve256", r"f(mla|mad)\tz\d")]
)
def test_vectors_are_as_wide_as_sve_is_known_to_be(spec: str, registers: str) -> None:
    (task,) = extract_tasks("dense 64 64 64", find_hardware(spec))
    schedule = next(s for _, s in DesignSpace(task).sample(0) if s is not None)
    code = tvm.build(schedule.mod, target=task.tvm_target()).inspect_source("asm")
    assert re.search(registers, code)


@needs_emulator
def test_several_outputs_types_and_views(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
    y = np.arange(-6, 6, dtype="int8").reshape(4, 3)
    module = tvm.script.from_source(SEVERAL)
    b, d, same, a = emulated(module, find_hardware("aarch64"), tmp_path)([x, y])
    np.testing.assert_allclose(a, np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(b, a.reshape(4, 3))
    np.testing.assert_array_equal(d, b > y + 0.5)
    np.testing.assert_array_equal(same, x)
    assert d.dtype == bool


@needs_emulator
def test_one_that_crashes_or_hangs_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = emulated("softmax 4 8", find_hardware("aarch64"), tmp_path)
    inputs = load_network("softmax 4 8").random_inputs(0)
    cut_off = EmulatedNetwork.__call__
    monkeypatch.setattr(emulator, "_write_arguments", lambda write, *_: write(b"12345"))
    with pytest.raises(MeasureError, match=r"does not run in the emulator: .* cut off"):
        cut_off(network, inputs)
    monkeypatch.setattr(emulator, "_SECS", 0.001)
    with pytest.raises(MeasureError, match="took more than"):
        cut_off(network, inputs)


@needs_emulator
def test_code_that_needs_more_than_kernels_do_is_not_emulated(tmp_path: Path) -> None:
    board = find_hardware("aarch64")
    library = NetworkLibrary.build(prepare_network(load_network("softmax 4 8"), board), board)
    assert library.direct is not None
    with pytest.raises(EnvironmentMismatchError, match="does not link for the emulator"):
        EmulatedNetwork(library.direct, lambda path: path.write_text("{"), TRIPLE, tmp_path)
    sorting = Call(SimpleNamespace(global_symbol="tvm.contrib.sort"), [])
    direct = library.direct._replace(line=Line(calls=[sorting]))
    with pytest.raises(EnvironmentMismatchError, match=r"calls tvm\.contrib\.sort of TVM's"):
        EmulatedNetwork(direct, library.save_object, TRIPLE, tmp_path)


def test_what_is_missing_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert what_is_missing(TRIPLE) == ("qemu-aarch64 is not installed (apt-get install qemu-user)")
    monkeypatch.setattr(emulator.shutil, "which", lambda name: name if "qemu" in name else None)
    assert "no C compiler for aarch64 is installed" in str(what_is_missing(TRIPLE))
    board = find_hardware("aarch64")
    library = NetworkLibrary.build(prepare_network(load_network("softmax 4 8"), board), board)
    assert library.direct is not None
    with pytest.raises(EnvironmentMismatchError, match="no C compiler"):
        EmulatedNetwork(library.direct, library.save_object, library.triple, Path())
