"""The bench of shapes in ranges: what it keeps, that it goes on, and its page."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from costlib.tuning.result import TuneResult
from costlib.workloads import zoo
from costlib.workloads.ranges.symbolic import symbolic
from costlib.workloads.zoo.registry import NetworkSpec, Size, tokens
from tools.benchmarks import shapes as bench
from tools.evidence.in_ranges import AtShape, InRange, summarise_ranges
from tools.evidence.pages import page as pages
from tools.evidence.pages import shapes as page
from tools.evidence.range_curves import range_curves

NETWORK, DIM = "tiny", "sequence=7:8"


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of the zoo of two tasks."""

    def build(_: Size) -> nn.Module:
        return nn.Sequential(nn.Embedding(32, 8), nn.Linear(8, 8), nn.ReLU())

    spec = NetworkSpec(NETWORK, build, tokens(32), Size(1, 8), "s")
    monkeypatch.setitem(zoo._SPECS, NETWORK, spec)


def shape(extent: int, **fields: Any) -> AtShape:
    made = {"range_s": 1e-3, "handling_s": 1e-3, "pytorch_s": 4e-3, "max_abs_error": 1e-6, **fields}
    return AtShape(sizes={"sequence": extent}, served_by={"sequence": 8}, **made)


def row(*shapes: AtShape) -> InRange:
    return InRange(
        network="net",
        dims={"sequence": (5, 8)},
        hardware="some-cpu",
        trials=30,
        trials_of_one=20,
        drawn=4,
        sampled=1,
        shapes=shapes,
    )


def test_means_are_over_all_shapes_and_over_the_sample_that_was_tuned_alone() -> None:
    found = row(shape(5, alone_s=1e-3), shape(6), shape(7, fault="output0: wrong"))
    (summary,) = summarise_ranges([found])["summary"]
    assert summary == {
        "network": "net",
        "of_alone": 0.5,
        "of_pytorch": 2.0,
        "trials_ratio": 1.5,
        "wrong": 1,
    }
    (again,) = summarise_ranges([found])["networks"]
    assert InRange.model_validate(again) == found


def test_shapes_are_different_and_those_tuned_alone_are_among_them() -> None:
    network = symbolic(NETWORK, {"sequence": (5, 8)})
    assert network is not None
    drawn = bench.shapes_of(network, 3)
    assert len(set(drawn)) == 3
    assert sorted(bench.shapes_of(network, 50)) == [(5,), (6,), (7,), (8,)]
    assert set(bench.sample_of(network, 3, 2)) < set(drawn)


def test_a_bench_that_was_cut_off_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "shapes.json"
    tuned: list[str] = []

    def tune_quickly(source: str, **settings: Any) -> TuneResult:
        tuned.append(source)
        return tune(source, **settings | {"trials": 1}, bundle="none")

    tune = bench.tune
    monkeypatch.setattr(bench, "tune", tune_quickly)
    arguments = [NETWORK, "--dim", DIM, "--shapes", "2", "--alone", "1", "--runs", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["shapes", *arguments, "--out", str(out)])
    bench.main()
    (whole,) = bench.read_rows(out)
    assert len(whole.shapes) == 2 and len(whole.of_alone) == 1 and not whole.wrong
    cut = whole.model_copy(update={"shapes": whole.shapes[:1]})
    out.write_text(json.dumps(summarise_ranges([cut])))
    bench.main()
    (again,) = bench.read_rows(out)
    assert [one.sizes for one in again.shapes] == [one.sizes for one in whole.shapes]
    assert again.shapes[0] == whole.shapes[0]
    assert len(tuned) == len(set(tuned)) == 2


def test_the_page_says_what_was_tuned_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = row(shape(5, alone_s=1e-3, alone_trials=16), shape(6))
    for module in (page, pages):
        monkeypatch.setattr(module, "read_result", lambda _: summarise_ranges([found]))
    text = page.PAGE.text()
    assert "| `net` | sequence=5:8 |" in text
    assert "a random sample of 1" in text
    assert "0.50" in text
    (make,) = page.PAGE.pictures().values()
    (axes,) = make().axes
    lines = {str(line.get_label()): line for line in axes.get_lines()}
    assert [*lines["one file"].get_xdata()] == [5, 6]
    assert [*lines["one file"].get_ydata()] == [2, 2]
    assert [*lines["PyTorch"].get_ydata()] == [4, 4]
    assert [*lines["tuned for this shape alone"].get_xdata()] == [5]


def test_shapes_of_two_dimensions_are_points_without_lines() -> None:
    shapes = [shape(5), shape(6)]
    wide = [one.model_copy(update={"sizes": {"batch": 2, **one.sizes}}) for one in shapes]
    dims = {"batch": (1, 2), "sequence": (5, 8)}
    (axes,) = range_curves(row(*wide).model_copy(update={"dims": dims}), "").axes
    assert axes.get_xlabel() == "batch x sequence"
    assert [[*line.get_xdata()] for line in axes.get_lines()] == [[10, 12]] * 2
    assert {line.get_linestyle() for line in axes.get_lines()} == {"None"}
