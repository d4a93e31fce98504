"""TVMScript in files: what people write is read, and nothing in it is executed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from costlib.errors import InputError, UnsupportedModelError
from costlib.tvm_compat import relax, tvm
from costlib.workloads import load_network, prepare_network
from costlib.workloads.importers.relax import import_relax
from costlib.workloads.importers.script import parse_script

ADD = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("add"):
                v = T.axis.spatial(8, i)
                B[v] = {value}
"""


def parsed(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "model.py"
    path.write_text(text)
    return parse_script(path)


def called(mod: Any, *inputs: np.ndarray) -> list[np.ndarray]:
    """What the network computes."""
    network = import_relax(mod, "it")
    executable = tvm.compile(prepare_network(network), target="llvm")
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    result = main(*[tvm.runtime.tensor(array) for array in inputs])
    return [one.numpy() for one in ([result] if hasattr(result, "numpy") else result)]


def test_as_people_write_it(tmp_path: Path) -> None:
    text = f'''"""What it does (in words)."""
from __future__ import annotations

import nothing_like_it
import tvm
from tvm.script import ir as I
from tvm.script import tir as TT

N = 8
DTYPE = "float32"
print(open("/nowhere"))

{ADD.format(value="A[v] + T.float32(1)")}

if __name__ == "__main__":
    Module.show()
'''
    text = text.replace(" T.", " TT.").replace("@T.", "@TT.").replace("(T.", "(TT.")
    text = text.replace('(8,), "float32"', "(N,), DTYPE").replace("@I.", "@tvm.script.")
    (result,) = called(parsed(tmp_path, text), np.arange(8, dtype="float32"))
    np.testing.assert_array_equal(result, np.arange(8) + 1)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('A[v] + __import__("os").system("x")', "'.system' is Python"),
        ("(lambda: exit())()", "'exit' is not defined"),
        ("A.__class__", "'.__class__' is Python"),
        ("T.entry.inspect.os.system", "'T.entry.inspect.os.system' is not allowed"),
        ("T.prim_func.__globals__", "not allowed"),
        ("[exit() for _ in range(1)][0]", "ListComp is Python"),
        ('f"{A}"', "JoinedStr is Python"),
        ('T.call_extern("float32", "system", "x")', "'T.call_extern' is not allowed"),
        ('T.call_intrin("float32", "tirx.tvm_call_packed", "x")', "a string that holds code"),
        ('"exit()"', "a string that holds code"),
        ("A[v] * 9 ** 9 ** 9 ** 9", "a power, which may take for ever"),
        ("T", "'T' is no value"),
        ("A[w]", "'w' is not defined"),
        ("A[v, v, v]", "Too many indices"),
        ("T.nonsense(A[v])", "has no attribute 'nonsense'"),
    ],
)
def test_python_is_refused_and_faults_are_placed(value: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        parsed(tmp_path, ADD.format(value=value))
    message = str(caught.value)
    assert said in message
    assert message.startswith(f"{tmp_path / 'model.py'}:9: ")
    assert "\n" not in message


def test_strings_are_evaluated_by_tvm_and_must_be_no_calls(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("open('{marker}', 'w')", 4), "float32")):
        return R.nn.relu(x)
"""
    with pytest.raises(InputError, match="a string that holds code"):
        parsed(tmp_path, text)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "declares nothing"),
        (2 * ADD.format(value="A[v]"), "declares 2 things"),
        ("def (", ":1: not TVMScript: invalid syntax"),
        ("-" * 100_000 + "1", "nested too deeply"),
        ("\0", "null bytes"),
    ],
)
def test_what_is_no_script(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        parsed(tmp_path, text)


def function(body: str, *buffers: str) -> Any:
    arguments = ", ".join(f'{name}: T.Buffer((4,), "float32")' for name in buffers)
    lines = [f"@T.prim_func(s_tir=True)\ndef main({arguments}):", *body.splitlines()]
    return tvm.IRModule({"main": tvm.script.from_source("\n    ".join(lines))})


BLOCK = 'for i in range(4):\n    with T.sblock("it"):\n        v = T.axis.spatial(4, i)\n        '
X = np.array([1, 2, 3, 4], "float32")


def test_several_outputs_wherever_they_stand() -> None:
    mod = function(BLOCK + "P[v] = A[v] + B[v]\n        Q[v] = A[v] * B[v]", "A", "P", "B", "Q")
    total, product = called(mod, X, X)
    np.testing.assert_array_equal(total, 2 * X)
    np.testing.assert_array_equal(product, X * X)


def test_an_output_that_is_read_first_is_an_input_and_stays_as_it_was() -> None:
    mod = function(BLOCK + "C[v] = C[v] + A[v]", "C", "A")
    before = tvm.runtime.tensor(X)
    (result,) = called(mod, before.numpy(), 10 * X)
    np.testing.assert_array_equal(result, 11 * X)
    np.testing.assert_array_equal(before.numpy(), X)


def test_a_function_without_blocks() -> None:
    (result,) = called(function("for i in range(4):\n    B[i] = A[i] + A[i]", "A", "B"), X)
    np.testing.assert_array_equal(result, 2 * X)


def test_a_function_that_writes_nothing() -> None:
    with pytest.raises(UnsupportedModelError, match="writes none of its arguments"):
        import_relax(function("T.evaluate(0)", "A", "B"), "it")


def test_symbolic_shapes_are_refused(tmp_path: Path) -> None:
    text = """
@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.sblock("it"):
            v = T.axis.spatial(n, i)
            B[v] = A[v]
"""
    path = tmp_path / "model.py"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_network(path)
    assert "\n" not in str(caught.value)
