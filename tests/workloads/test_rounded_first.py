from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.tvm_compat import relax, tvm
from costlib.workloads import extract_tasks
from costlib.workloads.folding import static_type
from costlib.workloads.rounded_first import rounded_first

SHAPE = (1, 6, 6, 8)
Steps = Callable[[Callable[[Any], Any], Any], Any]


def number(value: float, dtype: str = "float32") -> Any:
    return relax.const(value, dtype)


def quantised(emit: Callable[[Any], Any], x: Any, scale: float = 9.0) -> Any:
    """Emit what rounds to a byte."""
    x = emit(relax.op.multiply(x, number(scale)))
    x = emit(relax.op.add(emit(relax.op.round(x)), number(3)))
    x = emit(relax.op.minimum(emit(relax.op.maximum(x, number(0))), number(255)))
    return emit(relax.op.astype(emit(relax.op.astype(x, "int32")), "uint8"))


def concatenated(emit: Callable[[Any], Any], parts: list[Any]) -> Any:
    return emit(relax.op.concat([emit(relax.op.nn.relu(part)) for part in parts], -1))


def pooled(emit: Callable[[Any], Any], x: Any) -> Any:
    return emit(relax.op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1, 1, 1), layout="NHWC"))


def module(build: Callable[[Callable[[Any], Any], list[Any]], Any]) -> Any:
    inputs = [relax.Var(name, relax.TensorType(SHAPE, "float32")) for name in "xy"]
    builder = relax.BlockBuilder()
    with builder.function("main", inputs):
        with builder.dataflow():
            out = builder.emit_output(build(builder.emit, inputs))
        builder.emit_func_output(out)
    return builder.get()


def types(mod: Any, name: str) -> list[str]:
    found = []
    relax.analysis.post_order_visit(
        mod["main"],
        lambda node: (
            found.append(static_type(node)[1])
            if getattr(getattr(node, "op", None), "name", "") == name
            else None
        ),
    )
    return found


def outputs(mod: Any) -> np.ndarray:
    """Compute a module's result of numbers of either sign, some out of a byte's bounds."""
    built = tvm.compile(mod, target="llvm")
    machine = relax.VirtualMachine(built, tvm.cpu())
    random = np.random.default_rng(0)
    arrays = [random.normal(0, 12, SHAPE).astype("float32") for _ in range(2)]
    return np.asarray(machine["main"](*map(tvm.runtime.tensor, arrays)).numpy())


MOVED = {
    "a concatenation": lambda emit, both: quantised(emit, concatenated(emit, both)),
    "a pool": lambda emit, both: quantised(emit, pooled(emit, emit(relax.op.add(*both)))),
    "a pool of a concatenation": lambda emit, both: quantised(
        emit, pooled(emit, concatenated(emit, both))
    ),
}


@pytest.mark.parametrize("case", MOVED.values(), ids=MOVED)
def test_moved_before_what_moves_numbers(case: Steps) -> None:
    before = module(case)
    after = relax.transform.DeadCodeElimination()(rounded_first(before))
    moving = ("relax.concat", "relax.nn.max_pool2d")
    assert {t for name in moving for t in types(before, name)} == {"float32"}
    assert {t for name in moving for t in types(after, name)} == {"uint8"}
    np.testing.assert_array_equal(outputs(after), outputs(before))


def _read_twice(emit: Callable[[Any], Any], both: list[Any]) -> Any:
    x = concatenated(emit, both)
    return emit(relax.op.add(emit(relax.op.astype(quantised(emit, x), "float32")), x))


def _pooled_read_twice(emit: Callable[[Any], Any], both: list[Any]) -> Any:
    x = emit(relax.op.add(*both))
    small = emit(relax.op.astype(quantised(emit, pooled(emit, x)), "float32"))
    return emit(relax.op.add(small, pooled(emit, emit(relax.op.nn.relu(x)))))


def _bounded_by(*steps: Callable[[Any], Any]) -> Steps:
    def build(emit: Callable[[Any], Any], both: list[Any]) -> Any:
        x = pooled(emit, emit(relax.op.add(*both)))
        for step in steps:
            x = emit(step(x))
        return emit(relax.op.astype(x, "uint8"))

    return build


LEFT = {
    "what is concatenated is read as it is, too": (_read_twice, "relax.concat"),
    "what is pooled is read as it is, too": (_pooled_read_twice, "relax.nn.max_pool2d"),
    "signs change": (
        lambda emit, both: quantised(emit, pooled(emit, emit(relax.op.add(*both))), -9.0),
        "relax.nn.max_pool2d",
    ),
}


@pytest.mark.parametrize(("case", "name"), LEFT.values(), ids=LEFT)
def test_left_where_it_is(case: Steps, name: str) -> None:
    before = module(case)
    after = relax.transform.DeadCodeElimination()(rounded_first(before))
    assert set(types(after, name)) == {"float32"}
    np.testing.assert_array_equal(outputs(after), outputs(before))


def _at_least(value: float) -> Callable[[Any], Any]:
    return lambda x: relax.op.maximum(x, number(value))


def _at_most(value: float) -> Callable[[Any], Any]:
    return lambda x: relax.op.minimum(x, number(value))


@pytest.mark.parametrize(
    ("steps", "fits"),
    [
        ((), False),
        ((_at_least(0),), False),
        ((_at_most(255),), False),
        ((_at_least(0), _at_most(300)), False),
        ((_at_least(-1), _at_most(255)), False),
        ((_at_least(0), _at_most(255)), True),
        ((_at_most(255), relax.op.nn.relu), True),
    ],
)
def test_a_byte_is_made_before_a_pool_of_what_it_holds(
    steps: tuple[Callable[[Any], Any], ...], fits: bool
) -> None:
    after = relax.transform.DeadCodeElimination()(rounded_first(module(_bounded_by(*steps))))
    assert types(after, "relax.nn.max_pool2d") == ["uint8" if fits else "float32"]


def test_a_quantised_network_moves_bytes(hardware: Hardware) -> None:
    moving = [
        task
        for task in extract_tasks("squeezenet_int8@r64", hardware)
        if task.name.startswith(("concatenate", "max_pool2d"))
    ]
    assert len(moving) >= 6
    assert {dtype for task in moving for dtype, _ in task.arguments} == {"uint8"}
