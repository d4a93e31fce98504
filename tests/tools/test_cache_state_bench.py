"""The bench of cold weights: what it keeps, and that it goes on where it was cut off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from costlib.hardware import Hardware
from tools.benchmarks import cache_state as bench
from tools.benchmarks.cache_state_case import CacheStateCase, Side, measured


def side(network_s: float) -> Side:
    return Side(
        network_s=network_s,
        spread_s=(network_s, network_s),
        is_settled=True,
        tasks_s=network_s / 2,
        trials=4,
        measure_s=1.0,
    )


def case(name: str, seed: int, warm_s: float, cold_s: float) -> CacheStateCase:
    return CacheStateCase(
        name=name,
        seed=seed,
        threads=1,
        hardware=Hardware.local(num_cores=1).hardware_id,
        per_task=2,
        weight_bytes=2000,
        cache_bytes=1000,
        warm=side(warm_s),
        cold=side(cold_s),
    )


def test_gains_are_means_over_seeds_and_then_over_networks() -> None:
    rows = [case("a", 0, 4.0, 1.0), case("a", 1, 1.0, 1.0), case("b", 0, 1.0, 2.0)]
    found = bench.summarise(rows)
    assert found["by_network"] == pytest.approx({"a": 2.0, "b": 0.5})
    assert found["geometric_mean"] == pytest.approx(1.0)
    assert [CacheStateCase.model_validate(row) for row in found["cases"]] == rows
    assert bench.summarise([])["geometric_mean"] is None


def test_what_is_there_is_not_measured_again_and_what_fails_costs_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def in_a_process(_: str, name: str, seed: str, *__: str) -> dict[str, Any]:
        asked.append((name, seed))
        if name == "broken":
            raise subprocess.CalledProcessError(1, "python")
        return case(name, int(seed), 2e-3, 1e-3).model_dump()

    out = tmp_path / "cache_state.json"
    out.write_text(json.dumps(bench.summarise([case("net", 0, 1e-3, 1e-3)])))
    monkeypatch.setattr(bench, "in_a_process", in_a_process)
    settings = ["--runs", str(tmp_path), "--out", str(out), "--threads", "1", "--per-task", "2"]
    monkeypatch.setattr(sys, "argv", ["bench", "net", "broken", *settings, "--seeds", "0", "1"])
    bench.main()
    assert asked == [("broken", "0"), ("net", "1"), ("broken", "1")]
    assert [one.seed for one in bench.read_rows(out)] == [0, 1]
    said = capsys.readouterr().out
    assert "broken 0 1 ended with 1" in said
    assert "net seed 1, 1 threads: warm 2.000 ms, its tasks 1.000 ms; cold 1.000 ms" in said


def test_a_network_that_fits_into_the_cache_is_left_out(tmp_path: Path) -> None:
    found = measured("dense 1 16 16", 0, 1, 1, tmp_path)
    assert found.gain is None
    assert found.problem == "its weights fit into the last cache"
    assert not list(tmp_path.iterdir())
