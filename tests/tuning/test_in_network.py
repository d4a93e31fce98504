from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.tuning import in_network
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.in_network import fastest_version, place
from costlib.tvm_compat import ms, tvm
from costlib.tvm_compat.api import commit_program
from costlib.workloads import load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from costlib.workloads.task import Task

SOURCE = "matmul 192 192 192"


@pytest.fixture(autouse=True)
def as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_network, "_RANKS", 4)


@pytest.fixture(scope="module")
def measurer(hardware: Hardware) -> Iterator[Measurer]:
    with Measurer(hardware) as measurer:
        yield measurer


class _Built:
    """A network, and how often it was compiled."""

    def __init__(self, hardware: Hardware) -> None:
        self.prepared = prepare_network(load_network(SOURCE), hardware)
        (self.task,) = tasks_of(self.prepared, hardware.target)
        self._hardware = hardware
        self.count = 0

    def build(self, database: Any, path: Path) -> None:
        self.count += 1
        CompiledNetwork.build(self.prepared, self._hardware, database).save(path)


@pytest.fixture
def built(hardware: Hardware) -> _Built:
    return _Built(hardware)


def _by_rows(task: Task) -> Any:
    """A program that goes along the rows of what it reads: some ten times faster."""
    schedule = tvm.s_tir.Schedule(task.mod)
    (block,) = (b for b in schedule.get_child_blocks(schedule.get_sblock("root")))
    *_, i, j, k = schedule.get_loops(block)
    schedule.reorder(i, k, j)
    schedule.vectorize(schedule.split(j, [None, 16])[1])
    return schedule


def test_what_is_faster_in_the_network_is_taken(built: _Built, measurer: Measurer) -> None:
    """Although it is said to be slower alone."""
    database = ms.database.MemoryDatabase()
    target = built.task.tvm_target()
    commit_program(database, built.task.mod, target, 1.0e-6)
    commit_program(database, built.task.mod, target, 1.2e-6, _by_rows(built.task))
    placed = place(database, [built.task], measurer, built.build)
    assert placed is not None
    assert placed.latency_s == {built.task.workload_id: pytest.approx(1.2e-6)}
    assert placed.gain > 1
    (record,) = placed.database.get_all_tuning_records()
    assert float(record.run_secs[0]) == pytest.approx(1.2e-6)
    assert built.count == 3, "one of each rank, and what was chosen"


def test_the_best_stays(built: _Built, measurer: Measurer) -> None:
    database = ms.database.MemoryDatabase()
    target = built.task.tvm_target()
    commit_program(database, built.task.mod, target, 1.2e-6)
    commit_program(database, built.task.mod, target, 1.0e-6, _by_rows(built.task))
    assert place(database, [built.task], measurer, built.build) is None


@pytest.mark.parametrize("slower", [[], [2.0e-6]])
def test_nothing_to_choose_from(slower: list[float], built: _Built, measurer: Measurer) -> None:
    database = ms.database.MemoryDatabase()
    for latency_s in [1.0e-6, *slower]:
        commit_program(database, built.task.mod, built.task.tvm_target(), latency_s)
    assert place(database, [built.task], measurer, built.build) is None
    assert built.count == 0


def test_the_fastest_version_is_the_one_that_runs_fastest(
    built: _Built, measurer: Measurer
) -> None:
    fast = ms.database.MemoryDatabase()
    commit_program(fast, built.task.mod, built.task.tvm_target(), 1e-6, _by_rows(built.task))
    builds = [partial(built.build, database) for database in (None, fast)]
    assert fastest_version(builds, measurer) == 1
    assert fastest_version(builds[::-1], measurer) == 0
