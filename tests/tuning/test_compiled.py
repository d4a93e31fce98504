"""A compiled network takes what its original takes, and returns what that returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.tuning.compiled import CompiledNetwork
from costlib.tvm_compat import ms
from costlib.workloads import load_network, prepare_network


class Decoder(nn.Module):
    """Nested and named inputs, a nested result, and a cache that is kept from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(3, 4))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, pair, options, *, scale):
        x, position = pair
        self.kept[position] = x * scale
        self.calls += 1
        return {"sum": self.kept.sum(0), "rest": [options["half"] * 2, None], "calls": self.calls}


PAIR = (torch.ones(4), torch.tensor([1]))
OPTIONS = {"half": torch.ones(2, dtype=torch.bfloat16)}
SCALE = torch.tensor(3.0)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory, hardware: Hardware) -> CompiledNetwork:
    program = torch.export.export(Decoder(), (PAIR, OPTIONS), {"scale": SCALE})
    network = load_network(program)
    path = tmp_path_factory.mktemp("compiled") / "network.so"
    CompiledNetwork.build(prepare_network(network, hardware), hardware).save(path)
    return CompiledNetwork.load(path)


def test_trees_types_and_state(compiled: CompiledNetwork) -> None:
    compiled.reset()
    original = Decoder()
    for position in (1, 0):
        pair = (torch.ones(4), torch.tensor([position]))
        ours = compiled(pair, OPTIONS, scale=SCALE)
        theirs = original(pair, OPTIONS, scale=SCALE)
        assert list(ours) == list(theirs) == ["sum", "rest", "calls"]
        assert ours["rest"][1] is None
        assert torch.equal(ours["sum"], theirs["sum"])
        assert torch.equal(ours["rest"][0], theirs["rest"][0])
        assert ours["rest"][0].dtype == torch.bfloat16
        assert ours["calls"] == theirs["calls"]


def test_reset_forgets_and_results_do_not_change_afterwards(compiled: CompiledNetwork) -> None:
    compiled.reset()
    first = compiled(PAIR, OPTIONS, scale=SCALE)
    compiled(PAIR, OPTIONS, scale=SCALE)
    assert first["calls"] == 1
    compiled.reset()
    assert compiled(PAIR, OPTIONS, scale=SCALE)["calls"] == 1


def test_numpy_goes_in_and_comes_out(compiled: CompiledNetwork) -> None:
    compiled.reset()
    pair = (np.ones(4, "float32"), np.array([1]))
    half = np.ones(2, ml_dtypes.bfloat16)
    result = compiled(pair, {"half": half}, scale=3.0)
    assert isinstance(result["sum"], np.ndarray)
    assert result["sum"].tolist() == [3.0] * 4
    assert result["rest"][0].dtype == ml_dtypes.bfloat16


def test_it_tells_what_it_expects(compiled: CompiledNetwork) -> None:
    assert compiled.signature is not None
    assert "float32[4]" in str(compiled.signature)
    with pytest.raises(InputError, match=r"takes pair_0: float32\[4\]; given was pair_0: float64"):
        compiled((np.ones(4), np.array([1])), OPTIONS, scale=SCALE)
    with pytest.raises(InputError, match="wanted are scale; given: none"):
        compiled(PAIR, OPTIONS)


def test_a_library_without_a_signature_takes_arrays_in_order(
    hardware: Hardware, tmp_path: Path
) -> None:
    from costlib.tvm_compat import tvm
    from costlib.workloads.interface import SIGNATURE, STATE

    prepared = prepare_network(load_network("dense 2 2 2"), hardware)
    functions = {
        name: function
        for name, function in prepared.functions.items()
        if name.name_hint not in (SIGNATURE, STATE)
    }
    CompiledNetwork.build(tvm.IRModule(functions), hardware).save(tmp_path / "old.so")
    old = CompiledNetwork.load(tmp_path / "old.so")
    assert old.signature is None
    (output,) = old(np.ones((2, 2), "float32"))
    assert output.shape == (2, 2)


def test_what_tvm_scatters_with_compiles_beside_a_database(hardware: Hardware, capfd: Any) -> None:
    class Scatter(nn.Module):
        def forward(self, x, index, source):
            return x.scatter_add(1, index, source).relu()

    inputs = (torch.ones(2, 4), torch.tensor([[0, 3], [-1, 1]]) % 4, torch.ones(2, 2))
    network = load_network(Scatter(), example_inputs=inputs)
    prepared = prepare_network(network, hardware)
    compiled = CompiledNetwork.build(prepared, hardware, ms.database.MemoryDatabase())
    assert torch.equal(compiled(*inputs), Scatter()(*inputs))
    assert "pragma" not in capfd.readouterr().err
