"""Products of bytes on ARM64: the instruction is in the code, and its sums are exact."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from cross_tools import needs_emulator
from onnx import TensorProto, helper, numpy_helper

from costlib.hardware import Hardware, find_hardware
from costlib.measure.emulator import EmulatedNetwork
from costlib.processor import has_instructions
from costlib.space.design_space import DesignSpace
from costlib.tuning.library import NetworkLibrary
from costlib.tvm_compat import ms, tvm
from costlib.tvm_compat.api import commit_program
from costlib.workloads import Network, extract_tasks, load_network, prepare_network

TRIES = 6
"""In some programs what fills up the activations stands between them and the instruction."""

TYPES = {"uint8": (TensorProto.UINT8, 117), "int8": (TensorProto.INT8, -9)}


def network_of(operator: str, dtype: str, x: list[int], w: np.ndarray, **attrs: Any) -> Network:
    """Return an integer product: its output is int32, and is what it is to the last bit."""
    code, zero = TYPES[dtype]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "w", "z"], ["out"], **attrs)],
        "integers",
        [helper.make_tensor_value_info("x", code, x)],
        [helper.make_tensor_value_info("out", TensorProto.INT32, None)],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array(zero, dtype), "z")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return load_network(onnx.shape_inference.infer_shapes(made))


def drawn(*shape: int) -> np.ndarray:
    """Draw weights, the largest among them."""
    weight = np.random.default_rng(0).integers(-127, 128, shape).astype("int8")
    weight[0] = -128
    return weight


NETWORKS = {
    "rows and columns that fill no block": ("MatMulInteger", [3, 70], drawn(70, 21), {}),
    "a batch": ("MatMulInteger", [2, 5, 32], drawn(32, 16), {}),
    "a window with zeros around": (
        "ConvInteger",
        [1, 6, 7, 6],
        drawn(10, 6, 3, 3),
        {"pads": [1, 0, 1, 1], "strides": [2, 1]},
    ),
    "groups, which are not packed": (
        "ConvInteger",
        [1, 4, 5, 5],
        drawn(8, 2, 3, 3),
        {"group": 2},
    ),
}


PLAIN, BATCH, WINDOW, GROUPS = NETWORKS


@needs_emulator
@pytest.mark.parametrize(
    ("what", "spec", "dtype", "instruction"),
    [
        (PLAIN, "aarch64+dotprod", "uint8", "\tsdot"),
        (PLAIN, "aarch64", "uint8", "\tsmull"),
        (PLAIN, "aarch64", "int8", "\tsmull"),
        (PLAIN, "aarch64+dotprod+i8mm", "uint8", "\tusdot"),
        (PLAIN, "aarch64+dotprod+i8mm", "int8", "sdot"),
        (BATCH, "aarch64+dotprod", "int8", "\tsdot"),
        (WINDOW, "aarch64+dotprod", "uint8", "\tsdot"),
        (WINDOW, "aarch64", "int8", "\tsmull"),
        (WINDOW, "aarch64+dotprod+i8mm", "uint8", "\tusdot"),
        (GROUPS, "aarch64+dotprod", "uint8", "\tsdot"),
    ],
)
def test_sums_on_arm_are_exact(
    what: str, dtype: str, spec: str, instruction: str, tmp_path: Path
) -> None:
    operator, shape, weight, attrs = NETWORKS[what]
    network, board = network_of(operator, dtype, shape, weight, **attrs), find_hardware(spec)
    database = ms.database.MemoryDatabase()
    is_found = False
    for task in extract_tasks(network, board):
        programs = (one for _, one in DesignSpace(task).sample(0) if one is not None)
        best = next(programs, None)
        for schedule in itertools.islice(programs, TRIES) if "packed" in task.name else ():
            built = tvm.build(schedule.mod, target=task.tvm_target())
            if instruction in built.inspect_source("asm"):
                best, is_found = schedule, True
        if best is not None:
            commit_program(database, task.mod, task.tvm_target(), 1e-3, best)
    assert is_found == ("not packed" not in what)
    library = NetworkLibrary.build(prepare_network(network, board), board, database)
    assert library.direct is not None
    emulated = EmulatedNetwork(library.direct, library.save_object, library.triple, tmp_path)
    limits = np.iinfo(dtype)
    x = np.random.default_rng(1).integers(limits.min, limits.max + 1, shape).astype(dtype)
    x[:, 0] = limits.max
    x[:, 1] = limits.min
    (sums,) = emulated([x])
    assert network.reference is not None
    (expected,) = network.reference([x])
    np.testing.assert_array_equal(sums, expected)


def test_signed_activations_are_not_moved_there_and_back() -> None:
    board = find_hardware("aarch64+dotprod")
    network = network_of("MatMulInteger", "int8", [3, 64], drawn(64, 16))
    (task,) = extract_tasks(network, board)
    assert task.arguments[0] == ("int8", (3, 64))
    assert task.arguments[1] == ("int8", (4, 16, 4, 4))


@pytest.mark.parametrize(
    ("board", "has"),
    [
        (Hardware.aarch64(), False),
        (Hardware.aarch64(["dotprod"]), True),
        (Hardware.aarch64(mcpu="cortex-a76"), True),
        (Hardware.cuda("sm_80"), False),
    ],
)
def test_what_a_board_has_is_read_from_its_target(board: Hardware, has: bool) -> None:
    assert has_instructions(board.target, "dotprod") == has
    assert has_instructions(board.target, "neon") == (board.kind == "cpu")
