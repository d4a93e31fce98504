"""A run never ships a network that computes something else than its original."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from costlib.errors import DifferentNetworkError
from costlib.hardware import Hardware
from costlib.tuning import compiling
from costlib.tuning.comparison import Comparison
from costlib.tuning.compiling import Built, Compiler
from costlib.tuning.networks import NetworkSet
from costlib.tuning.profile import PROFILE, RunProfile
from costlib.tuning.tune import tune
from costlib.workloads import load_network
from costlib.workloads.agreement import OutputAgreement

SOURCES = ("layer_norm 4 8", "softmax 4 8", "dense 4 4 4", "mean 4 8", "gelu 4 8")


class FakeOriginal:
    """Sees a fault in libraries that hold a program of one of some tasks."""

    name = "PyTorch"
    faults: Sequence[str] = ()

    def __init__(self, bad: set[str]) -> None:
        self.bad = bad
        self.compared = 0

    def compare(self, library: Path, *_: object) -> tuple[list[OutputAgreement], float]:
        self.compared += 1
        held = json.loads(library.read_text())
        fault = "wrong" if self.bad & set(held) or "always" in self.bad else None
        return [OutputAgreement(name="y", dtype="float32", shape=(1,), fault=fault)], 1.0


@pytest.fixture(scope="module")
def networks(hardware: Hardware) -> NetworkSet:
    loaded = NetworkSet.load(SOURCES, hardware)
    calls = loaded.calls.sum(0, keepdims=True)  # One network that calls all the tasks.
    return dataclasses.replace(
        loaded,
        networks=loaded.networks[:1],
        prepared=loaded.prepared[:1],
        source_of=[0],
        calls=calls,
    )


def compiled(
    networks: NetworkSet, hardware: Hardware, bad: set[str], tmp_path: Path, monkeypatch: Any
) -> tuple[set[str], list[str], FakeOriginal]:
    def build(_: object, __: object, database: Sequence[str], path: Path) -> Built:
        path.write_text(json.dumps(list(database)))
        return Built(path, SimpleNamespace(needs=()))  # type: ignore[arg-type]

    figures = Comparison(
        latency_before_s=1,
        latency_after_s=1,
        pytorch_latency_s=None,
        max_abs_error=0,
        max_abs_output=1,
    )
    monkeypatch.setattr(Compiler, "_built", build)
    monkeypatch.setattr(compiling, "compare", lambda *_: figures)
    monkeypatch.setattr(compiling, "only", lambda _, tasks: [t.workload_id for t in tasks])
    measurer = SimpleNamespace(server=SimpleNamespace(folder=tmp_path), devices=object())
    compiler = Compiler(networks, hardware, measurer, lambda _: None)  # type: ignore[arg-type]
    original = FakeOriginal(bad)
    compiler._originals[0] = original  # type: ignore[assignment]
    everything = [task.workload_id for task in networks.tasks]
    _, wrong = compiler.compile_tuned([1.0] * len(everything), tmp_path, everything)
    return wrong, json.loads((tmp_path / "network.so").read_text()), original


@pytest.mark.parametrize("places", [[], [0], [3], [1, 4], [0, 1, 2, 3, 4]])
def test_the_programs_to_blame_are_found_and_left_out(
    places: list[int], networks: NetworkSet, hardware: Hardware, tmp_path: Path, monkeypatch: Any
) -> None:
    names = [task.workload_id for task in networks.tasks]
    bad = {names[place] for place in places}
    wrong, held, original = compiled(networks, hardware, bad, tmp_path, monkeypatch)
    assert wrong == bad
    assert held == [name for name in names if name not in bad]
    if not places:
        assert original.compared == 1


def test_an_old_profile_is_not_kept_beside_a_new_library(
    networks: NetworkSet, hardware: Hardware, tmp_path: Path, monkeypatch: Any
) -> None:
    """The devices of a fleet note none."""
    (tmp_path / PROFILE).write_text(RunProfile(networks=()).model_dump_json())
    compiled(networks, hardware, set(), tmp_path, monkeypatch)
    assert not (tmp_path / PROFILE).exists()


def test_a_network_that_no_program_is_to_blame_for_is_an_error(
    networks: NetworkSet, hardware: Hardware, tmp_path: Path, monkeypatch: Any
) -> None:
    with pytest.raises(DifferentNetworkError, match="something else than PyTorch: y: wrong"):
        compiled(networks, hardware, {"always"}, tmp_path, monkeypatch)


def test_nothing_is_measured_for_a_network_that_is_wrong_untuned(
    hardware: Hardware, tmp_path: Path
) -> None:
    network = load_network("softmax 4 8")
    right = network.reference
    assert right is not None

    class Other:
        name = "PyTorch"

        def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
            return [output + 1 for output in right(inputs)]

        def timed(self, inputs: Sequence[np.ndarray]) -> Any:
            return right.timed(inputs)

    different = dataclasses.replace(network, reference=Other())
    with pytest.raises(DifferentNetworkError, match="output0: 32 of 32 elements differ"):
        tune(different, out=tmp_path / "run", trials=4, bundle="none", hardware=hardware)
    assert not list((tmp_path / "run").rglob("part-*.parquet"))
