from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from costlib.hardware import Hardware
from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.direct_calls import CALLS, TRACED
from costlib.tvm_compat.networks import compile_network
from costlib.workloads import load_network, prepare_network

SCRIPT = """
@I.ir_module
class Module:
    @R.function
    def main({arguments}):
        with R.dataflow():
            {body}
            R.output({outputs})
        return {result}
"""


def machine(module: Any, hardware: Hardware) -> Any:
    prepared = prepare_network(load_network(module), hardware)
    return relax.VirtualMachine(compile_network(prepared, hardware.tvm_target(), None), tvm.cpu())


def script(arguments: str, lines: list[str], outputs: str, result: str) -> Any:
    body = "\n            ".join(lines)
    return tvm.script.from_source(
        SCRIPT.format(arguments=arguments, body=body, outputs=outputs, result=result)
    )


def arrays(outputs: Any) -> list[np.ndarray]:
    return (
        [outputs.numpy()] if hasattr(outputs, "numpy") else [x for o in outputs for x in arrays(o)]
    )


def is_direct(made: Any) -> bool:
    try:
        made[TRACED]
    except AttributeError:
        return False
    return True


X = np.arange(12, dtype="float32").reshape(3, 4) - 5


@pytest.fixture(scope="module")
def chain(hardware: Hardware) -> Any:
    """Two outputs, the first of which is also an intermediate, seen in another shape."""
    lines = [
        "a = R.nn.relu(x)",
        "b = R.nn.softmax(a)",
        "c = R.matmul(b, y)",
        "d = R.reshape(b, (12,))",
    ]
    arguments = 'x: R.Tensor((3, 4), "float32"), y: R.Tensor((4, 2), "float32")'
    return machine(script(arguments, lines, "c, d", "(c, d, x)"), hardware)


def test_outputs_in_any_shape_and_inputs_as_outputs(chain: Any) -> None:
    y = np.ones((4, 2), "float32")
    c, d, x = arrays(chain["main"](tvm.runtime.tensor(X), tvm.runtime.tensor(y)))
    exponentials = np.exp(np.maximum(X, 0) - np.maximum(X, 0).max(1, keepdims=True))
    expected = exponentials / exponentials.sum(1, keepdims=True)
    np.testing.assert_allclose(d, expected.reshape(12), rtol=1e-5)
    np.testing.assert_allclose(c, expected @ y, rtol=1e-5)
    np.testing.assert_array_equal(x, X)


def test_results_of_calls_are_their_own(chain: Any) -> None:
    y = tvm.runtime.tensor(np.ones((4, 2), "float32"))
    first = chain["main"](tvm.runtime.tensor(X), y)[1]
    before = first.numpy().copy()
    chain["main"](tvm.runtime.tensor(-X), y)
    np.testing.assert_array_equal(first.numpy(), before)


def test_the_clock_goes_on_from_call_to_call(chain: Any) -> None:
    given = tvm.runtime.tensor(X), tvm.runtime.tensor(np.ones((4, 2), "float32"))
    outputs, clock = chain[TRACED](*given)
    names = json.loads(chain[CALLS]().numpy().tobytes())
    assert len(clock.numpy()) == len(names) + 1
    assert (np.diff(clock.numpy()) > 0).all()
    for traced, plain in zip(arrays(outputs), arrays(chain["main"](*given)), strict=True):
        np.testing.assert_array_equal(traced, plain)


def test_constants_scalars_and_other_types(hardware: Hardware) -> None:
    lines = [
        'a = R.add(x, R.const(2.5, "float32"))',
        'b = R.greater(a, R.const(0.0, "float32"))',
        'c = R.astype(a, "int64")',
        "d = R.sum(a)",
    ]
    made = machine(
        script('x: R.Tensor((3, 4), "float32")', lines, "b, c, d", "(b, c, d)"), hardware
    )
    assert is_direct(made)
    above, whole, total = arrays(made["main"](tvm.runtime.tensor(X)))
    np.testing.assert_array_equal(above, X + 2.5 > 0)
    np.testing.assert_array_equal(whole, (X + 2.5).astype("int64"))
    np.testing.assert_allclose(total, (X + 2.5).sum(), rtol=1e-6)


def test_types_that_tvm_stores_as_integers(hardware: Hardware) -> None:
    lines = [
        'a = R.nn.softmax(R.add(x, R.const(2.5, "bfloat16")))',
        "b = R.reshape(a, (4, 3))",
        "c = R.max(x)",
        'd = R.astype(R.sum(b, axis=[1]), "float32")',
    ]
    made = machine(
        script('x: R.Tensor((3, 4), "bfloat16")', lines, "b, c, d", "(b, c, d)"), hardware
    )
    assert is_direct(made)
    given = X.astype(ml_dtypes.bfloat16)
    chances, largest, total = arrays(made["main"](tvm.runtime.tensor(given)))
    powers = np.exp(X - X.max(1, keepdims=True))
    wanted = (powers / powers.sum(1, keepdims=True)).reshape(4, 3)
    assert str(chances.dtype) == str(largest.dtype) == "bfloat16"
    np.testing.assert_allclose(chances.astype("float32"), wanted, rtol=2e-2)
    np.testing.assert_array_equal(largest.astype("float32"), X.max())
    np.testing.assert_allclose(total, wanted.sum(1), rtol=3e-2)


def test_a_kernel_that_calls_a_function_of_tvms_own(hardware: Hardware) -> None:
    module = script('x: R.Tensor((3, 4), "float32")', ["a = R.sort(x)"], "a", "a")
    made = machine(module, hardware)
    assert is_direct(made)
    (found,) = arrays(made["main"](tvm.runtime.tensor(X[:, ::-1].copy())))
    np.testing.assert_array_equal(found, np.sort(X))


def test_a_network_without_kernels(hardware: Hardware) -> None:
    module = script('x: R.Tensor((3, 4), "float32")', ["a = R.reshape(x, (4, 3))"], "a", "a")
    (found,) = arrays(machine(module, hardware)["main"](tvm.runtime.tensor(X)))
    np.testing.assert_array_equal(found, X.reshape(4, 3))


@pytest.mark.parametrize("triple", ["aarch64-linux-gnu", "riscv64-linux-gnu"])
def test_other_processors_with_a_clock_and_without(triple: str) -> None:
    target = tvm.target.Target({"kind": "llvm", "mtriple": triple, "num-cores": 2})
    assert compile_network(prepare_network(load_network("softmax 8 8")), target, None)
