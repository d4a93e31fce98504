"""Kernels of oneDNN are taken where they are faster, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.space.onednn import by_onednn
from costlib.tuning import vendor
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.config import TuneConfig
from costlib.tuning.library import NetworkLibrary
from costlib.tuning.tune import tune
from costlib.tuning.turns import Contestant
from costlib.tuning.vendor import check_vendor, faster_by_onednn
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import build_library
from costlib.tvm_compat.onednn import ENVIRONMENT, NEEDED, find_onednn
from costlib.workloads import extract_tasks, load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from costlib.workloads.task import Task

SOURCE = "matmul 32 32 32"


@pytest.fixture(scope="module")
def measurer(hardware: Hardware) -> Iterator[Measurer]:
    with Measurer(hardware) as measurer:
        yield measurer


def taking(monkeypatch: pytest.MonkeyPatch, tuned_s: float, called_s: float) -> None:
    """Say what the turns come to."""

    def turns(contestants: Sequence[Contestant], most: int) -> None:
        for one, seconds in zip(contestants, (tuned_s, called_s), strict=True):
            assert 0 < one.run(0.01) < np.inf
            one.turns += [seconds] * most

    monkeypatch.setattr(vendor, "take_turns", turns)


@pytest.mark.parametrize(("called_s", "is_taken"), [(0.5, True), (0.99, False), (2.0, False)])
def test_it_is_taken_where_it_is_faster(
    called_s: float,
    is_taken: bool,
    matmul: Task,
    measurer: Measurer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taking(monkeypatch, 1.0, called_s)
    found = faster_by_onednn([matmul], [1.0], ms.database.MemoryDatabase(), measurer)
    assert {name: one.latency_s for name, one in found.items()} == (
        {matmul.workload_id: called_s} if is_taken else {}
    )


def test_other_tasks_are_left(hardware: Hardware, measurer: Measurer) -> None:
    tasks = extract_tasks("softmax 16 16", hardware)
    assert faster_by_onednn(tasks, [1.0], ms.database.MemoryDatabase(), measurer) == {}


def test_a_network_calls_it_and_says_so(
    hardware: Hardware, measurer: Measurer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taking(monkeypatch, 1.0, 0.5)
    prepared = prepare_network(load_network(SOURCE), hardware)
    tasks = tasks_of(prepared, hardware.target)
    database = ms.database.MemoryDatabase()
    found = faster_by_onednn(tasks, [1.0], database, measurer)
    library = NetworkLibrary.build(prepared, hardware, database, found)
    assert library.needs == (NEEDED,)
    assert NetworkLibrary.build(prepared, hardware, database).needs == ()
    network = CompiledNetwork.load(library.save(tmp_path / "network.so"))
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((32, 32)).astype("float32") for _ in range(2))
    np.testing.assert_allclose(np.asarray(network(left, right)), left @ right, rtol=1e-4, atol=1e-4)


def test_where_it_is_missing_a_call_fails_with_one_line(
    matmul: Task, measurer: Measurer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    there = tmp_path / NEEDED
    there.symlink_to(find_onednn())
    monkeypatch.setenv(ENVIRONMENT, str(there))
    mod = by_onednn(matmul.mod, 2)
    build_library(mod, matmul.tvm_target(), tmp_path / "program.so", keep_layout=True)
    there.unlink()  # The measuring process was started without the variable.
    outcome, latency_s = measurer.run_library(tmp_path / "program.so", matmul.arguments)
    assert latency_s is None
    assert outcome.error is not None
    assert "oneDNN is not here" in outcome.error
    assert "\n" not in outcome.error


def test_a_run_takes_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taking(monkeypatch, 1.0, 0.5)
    config = TuneConfig(vendor="onednn")
    result = tune(SOURCE, out=tmp_path / "run", trials=1, bundle="none", config=config)
    assert result.networks[0].needs == (NEEDED,)
    assert [task.vendor_s for task in result.tasks] == [0.5]


def test_it_is_not_asked_for_unless_somebody_does() -> None:
    assert TuneConfig().vendor is None


def test_what_cannot_be_measured_is_refused(
    hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_vendor(None, hardware.simulated(), is_here=False)
    check_vendor("onednn", hardware, is_here=True)
    for other, is_here in ((hardware.simulated(), True), (hardware, False)):
        with pytest.raises(InputError, match="leave out --vendor"):
            check_vendor("onednn", other, is_here=is_here)
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "missing"))
    with pytest.raises(InputError, match="not installed"):
        tune(SOURCE, out=tmp_path / "run", trials=1, config=TuneConfig(vendor="onednn"))
