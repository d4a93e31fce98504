"""Programs that are built in the background."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from costlib.errors import MeasureError
from costlib.measure.building import Building
from costlib.measure.measurement import Measurement
from costlib.schema import Status
from costlib.space.program import Program

PROGRAM = Program("workload", "sketch", [])


def run(built: str, best_s: float | None) -> list[Measurement]:
    return [Measurement(PROGRAM, Status.OK, latency_s=best_s, error=built)]


def test_the_caller_goes_on_meanwhile_and_runs_what_was_built() -> None:
    go = threading.Event()

    def build() -> str:
        assert go.wait(10)
        return "built"

    with ThreadPoolExecutor(1) as thread, Building(thread, build, run) as building:
        meanwhile = time.perf_counter()
        go.set()
        (measurement,) = building.run(2.0)
    assert (measurement.error, measurement.latency_s) == ("built", 2.0)
    assert meanwhile <= building.built_at <= time.perf_counter()


def test_it_is_built_before_the_caller_leaves() -> None:
    built: list[str] = []
    left = threading.Event()

    def build() -> str:
        assert not left.wait(0.2)
        built.append("built")
        return "built"

    with ThreadPoolExecutor(1) as thread:
        with pytest.raises(ZeroDivisionError), Building(thread, build, run):
            raise ZeroDivisionError
        left.set()
        assert built == ["built"]


def test_what_fails_while_building_is_raised_where_it_is_run() -> None:
    def build() -> str:
        raise MeasureError("the measuring process died")

    died = pytest.raises(MeasureError, match="died")
    with ThreadPoolExecutor(1) as thread, Building(thread, build, run) as building, died:
        building.run()
