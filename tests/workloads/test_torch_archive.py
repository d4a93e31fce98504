from __future__ import annotations

import ast
import json
import re
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from costlib.errors import InputError
from costlib.workloads import load_network
from costlib.workloads.importers.torch_archive import _EXTENT, data_of
from costlib.workloads.ranges.ranged import ranged

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(nn.ReLU(), (torch.zeros(3, 4),)), path)
    return path


def edit(path: Path, change: Edit, compression: int = zipfile.ZIP_STORED) -> None:
    """Change the program in a file."""
    with zipfile.ZipFile(path) as archive:
        content = {entry: archive.read(entry) for entry in archive.namelist()}
    (model,) = (entry for entry in content if entry.endswith("models/model.json"))
    program = json.loads(content[model])
    change(program)
    content[model] = json.dumps(program).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for entry, data in content.items():
            archive.writestr(entry, data)


def graph(program: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = program["graph_module"]["graph"]
    return found


def call(target: str) -> Edit:
    return lambda program: graph(program)["nodes"][0].update(target=target)


def input_type(spec: object) -> Edit:
    def change(program: dict[str, Any]) -> None:
        signature = program["graph_module"]["module_call_graph"][0]["signature"]
        signature["in_spec"] = json.dumps([1, spec])

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (call("torch.os.system"), "it calls 'torch.os.system'"),
        (call("torch.ops.load_library"), "it calls"),
        (call("torch.ops.aten.save.default"), "it calls"),
        (call("torch.ops.aten.from_file.default"), "it calls"),
        (call("_operator.attrgetter"), "it calls"),
        (lambda p: graph(p)["outputs"].append({"as_operator": "torch.os.system"}), "it calls"),
        (
            lambda p: graph(p)["nodes"][0].update(name="f()"),
            r"it has 'f\(\)' where a name should be",
        ),
        (lambda p: graph(p)["tensor_values"].update({"f()": {}}), "where a name should be"),
        (
            lambda p: graph(p)["tensor_values"].update(as_string={"sizes": ["f()"]}),
            "where a name should be",
        ),
        (
            lambda p: graph(p)["tensor_values"].update(as_string="x", b="f()"),
            "where a name should be",
        ),
        (lambda p: p["range_constraints"].update({"f()": {}}), "where a name should be"),
        (lambda p: graph(p)["sym_int_values"].update(s={"expr_str": "s"}), "it has the extent"),
        (lambda p: graph(p)["sym_int_values"].update(s={"expr_str": "f()"}), "it has the extent"),
        (
            lambda p: graph(p)["sym_int_values"].update(s={"expr_str": "Integer(9)**Integer(9)"}),
            "it has the extent",
        ),
        (input_type({"__enum__": True, "fqn": "antigravity:x"}), "imports modules"),
        (input_type({"context": '{"default_factory_module": "antigravity"}'}), "imports modules"),
        (input_type({"context": '["f()"]'}), "where a name should be"),
    ],
)
def test_programs_that_would_execute_something(saved: Path, change: Edit, reason: str) -> None:
    edit(saved, change)
    with pytest.raises(InputError, match=reason) as caught:
        load_network(saved)
    assert "\n" not in str(caught.value)


def test_a_name_cannot_be_python(saved: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    name = json.dumps(f"input=__import__('pathlib').Path({str(touched)!r}).touch()")

    def change(program: dict[str, Any]) -> None:
        text = json.dumps(program).replace('"name": "input"}', f'"name": {name}}}')
        program |= json.loads(text.replace('"input": {"dtype"', f'{name}: {{"dtype"'))

    edit(saved, change)
    with pytest.raises(InputError, match="where a name should be"):
        load_network(saved)
    assert not touched.exists()
    with suppress(Exception):
        torch.export.load(saved).module()
    assert touched.exists()  # PyTorch itself does execute it.


def test_arguments_may_be_any_text(tmp_path: Path) -> None:
    class Product(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.einsum("ij, kj -> ik", x, x)

    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(Product(), (torch.zeros(3, 4),)), path)
    assert load_network(path).inputs[0].shape == (3, 4)


def test_what_is_no_part_of_a_program_is_left_out(saved: Path) -> None:
    edit(saved, lambda program: program.update(guards_code=["print('loaded')"]))
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("net/data/aotinductor/model/wrapper.so", b"\x7fELF")
    with zipfile.ZipFile(data_of(saved)) as data:
        assert not any("aotinductor" in entry for entry in data.namelist())
        (model,) = (entry for entry in data.namelist() if entry.endswith("models/model.json"))
        program = json.loads(data.read(model))
    assert program["guards_code"] == []
    assert graph(program)["nodes"][0]["metadata"] == {}
    assert load_network(saved).inputs[0].shape == (3, 4)


def test_no_more_is_read_than_the_file_is_long(saved: Path) -> None:
    edit(saved, lambda program: program.update(bomb="0" * 100_000), zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="compressed"):
        load_network(saved)


def _only_arithmetic(text: str) -> bool:
    """Whether Python would compute nothing but arithmetic of symbols and numbers of a text."""
    try:
        parsed = ast.parse(text, mode="eval")
    except SyntaxError:
        return True  # Nothing is computed.
    names = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)}
    texts = [
        node.value
        for node in ast.walk(parsed)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    kinds = {type(node) for node in ast.walk(parsed)}
    return (
        names <= {"Symbol", "Integer", "Pow", "Mul", "Add", "FloorDiv", "Mod", "Max", "Min"}
        and all(re.fullmatch(r"[a-z][0-9]+", one) for one in texts)
        and kinds <= {*_EXPRESSIONS}
    )


_EXPRESSIONS = (ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword)
_EXPRESSIONS += (ast.UnaryOp, ast.USub, ast.Tuple)


@settings(max_examples=300, deadline=None)
@given(st.from_regex(_EXTENT, fullmatch=True))
def test_an_extent_that_is_taken_computes_nothing_else(text: str) -> None:
    assert _only_arithmetic(text)
    with suppress(Exception):  # It may be no expression; whatever it is, it is evaluated.
        found = sympy.sympify(text)
        assert isinstance(found, (sympy.Basic, tuple))


@settings(max_examples=300, deadline=None)
@given(
    st.from_regex(_EXTENT, fullmatch=True),
    st.text(st.sampled_from("()[]{}.,_'\"=:;+-*/\\ \n\tabcxyzSI019\u0661\u00e9"), min_size=1),
    st.integers(0, 200),
)
def test_whatever_is_put_into_an_extent(text: str, more: str, place: int) -> None:
    changed = text[:place] + more + text[place:]
    assert not _EXTENT.fullmatch(changed) or _only_arithmetic(changed)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "Symbol('s0', positive=True, integer=True).func",
        "Symbol('s0', positive=True, integer=True)(Integer(1))",
        "Symbol('__import__', positive=True, integer=True)",
        "Symbol('s0', positive=True, integer=True, cls=print)",
        "Integer(1) if True else Integer(2)",
        "(lambda: Integer(1))()",
        "Integer(1)\n",
        "Integer(\u0661)",
    ],
)
def test_extents_that_would_run_code(saved: Path, text: str) -> None:
    edit(saved, lambda p: graph(p)["sym_int_values"].update(s={"expr_str": text}))
    with pytest.raises(InputError, match="it has the extent"):
        load_network(saved)


def test_a_saved_program_keeps_extents_that_may_be_0(tmp_path: Path) -> None:
    class Grown(nn.Module):
        def forward(self, x, y):
            return torch.cat([x, y])

    dims = ({0: torch.export.Dim("past", min=0, max=9)}, None)
    program = torch.export.export(Grown(), (torch.zeros(3), torch.zeros(1)), dynamic_shapes=dims)
    torch.export.save(program, tmp_path / "net.pt2")
    found = ranged(tmp_path / "net.pt2", {"x.0": (0, 9)})
    assert found is not None and found.table.outputs == (("x.0 + 1",),)
