from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from costlib.hardware import Hardware
from costlib.measure.measurer import Measurer
from costlib.tuning.close_versions import fastest_version
from costlib.tuning.compiled import CompiledNetwork
from costlib.tvm_compat import ms, tvm
from costlib.tvm_compat.api import commit_program
from costlib.workloads import load_network, prepare_network
from costlib.workloads.extraction import tasks_of
from costlib.workloads.task import Task

SOURCE = "matmul 192 192 192"


@pytest.fixture(scope="module")
def measurer(hardware: Hardware) -> Iterator[Measurer]:
    with Measurer(hardware) as measurer:
        yield measurer


class _Built:
    """A network that can be compiled."""

    def __init__(self, hardware: Hardware) -> None:
        self.prepared = prepare_network(load_network(SOURCE), hardware)
        (self.task,) = tasks_of(self.prepared, hardware.target)
        self._hardware = hardware

    def build(self, database: Any, path: Path) -> None:
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


def test_the_fastest_version_is_the_one_that_runs_fastest(
    built: _Built, measurer: Measurer
) -> None:
    fast = ms.database.MemoryDatabase()
    commit_program(fast, built.task.mod, built.task.tvm_target(), 1e-6, _by_rows(built.task))
    builds = [partial(built.build, database) for database in (None, fast)]
    assert fastest_version(builds, measurer) == 1
    assert fastest_version(builds[::-1], measurer) == 0
