from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from costlib.errors import InputError
from costlib.workloads import load_network
from costlib.workloads.importers.torch_archive import data_of

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
