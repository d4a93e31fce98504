"""The bench of preparing: what is switched off, what it keeps, and its page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
from costlib.tuning.library import NetworkLibrary
from costlib.tuning.networks import NetworkSet
from costlib.workloads import extract_tasks, load_network, prepare_network, winograd
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.variants import varied
from tools.benchmarks import preparation as bench
from tools.benchmarks.in_turns import Timed
from tools.evidence.pages import preparation as page


class Everything(nn.Module):
    """Has something of all that may be switched off."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Conv2d(16, 20, 1), nn.Conv2d(16, 20, 3, padding=1)
        self.last, self.square = nn.Conv2d(40, 20, 1), nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        joined = torch.cat([self.one(x).relu(), self.other(self.square(x)).relu()], 1)
        rows = x.flatten(2)
        scores = rows @ rows.transpose(1, 2) + torch.full((16, 16), -torch.inf).triu(1)
        token = (rows[:, :1] @ rows.transpose(1, 2)).softmax(-1) @ rows
        return self.last(joined), scores.softmax(-1) @ rows, token


def timed(network_s: float) -> Timed:
    return Timed(network_s=network_s, spread_s=(network_s, network_s), is_settled=True)


def case(network: str, part: str, seed: int, on_s: float, off_s: float) -> bench.Preparation:
    return bench.Preparation(
        network=network,
        part=part,
        seed=seed,
        per_task=2,
        hardware=Hardware.local(num_cores=2).hardware_id,
        on=timed(on_s),
        off=timed(off_s),
    )


def test_each_part_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(winograd._Convolution, "best_tile", lambda _: 4)
    example = (torch.randn(1, 16, 8, 8),)
    network = load_network(torch.export.export(Everything().eval(), example))
    hardware = Hardware.local(num_cores=2)

    def names(layouts: Layouts) -> list[str]:
        return [n.name for n in NetworkSet.load([network], hardware, layouts=layouts).networks]

    def seen() -> dict[str, object]:
        other = varied(network, "nhwc")
        library = NetworkLibrary.build(prepare_network(network, hardware), hardware)
        assert library.direct is not None
        attention = [t for t in extract_tasks(network, hardware) if t.name == "attention"]
        return {
            "attention": bool(attention),
            "masks": all(
                "Select" in task.mod.script()
                for task in attention
                if task.arguments[-1] == ("float32", (1, 16, 64))
            ),
            "caches": len(attention) != 1,
            "vectors": {t.arguments[1] for t in extract_tasks(other, hardware) if "conv" in t.name},
            "concatenations": any("_in_place" in c.name for c in library.direct.line.calls),
            "layouts": [name for name in names("all") if "winograd" not in name],
            "winograd": [name for name in names("channels-last") if "winograd" in name],
        }

    usual = seen()
    for part, off in bench.PARTS.items():
        with off():
            found = seen()
        assert {name for name in usual if found[name] != usual[name]} == {part}
    assert seen() == usual


def test_gains_are_means_over_seeds() -> None:
    rows = [
        case("a", "attention", 0, 1.0, 4.0),
        case("a", "attention", 1, 1.0, 1.0),
        case("b", "layouts", 0, 2.0, 1.0),
    ]
    found = bench.summarise(rows)
    assert found["gains"]["attention"] == pytest.approx({"a": 2.0})
    assert found["gains"]["layouts"] == pytest.approx({"b": 0.5})
    assert [bench.Preparation.model_validate(row) for row in found["cases"]] == rows


def test_what_is_there_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def measured(network: str, part: str, seed: int, *_: object) -> bench.Preparation:
        asked.append((network, part, seed))
        return case(network, part, seed, 1.0, 1.5)

    monkeypatch.setattr(bench, "_measured", measured)
    kept: list[bench.Preparation] = [case("net", "attention", 0, 1.0, 2.0)]
    monkeypatch.setattr(bench, "read_rows", lambda: kept)
    monkeypatch.setattr(bench, "write_result", lambda _, found: kept.sort(key=lambda c: c.seed))
    arguments = ["--cases", "net:attention", "net:layouts", "--per-task", "2", "--seeds", "0", "1"]
    monkeypatch.setattr(sys, "argv", ["bench", *arguments, "--runs", str(tmp_path)])
    bench.main()
    assert asked == [("net", "attention", 1), ("net", "layouts", 0), ("net", "layouts", 1)]
    assert len(kept) == 4


def test_a_part_that_there_is_not_is_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="resnet_18:fusion: name one of attention"):
        bench._case("resnet_18:fusion")


def test_the_page_has_a_line_for_each_part_and_network(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        case("a", "attention", 0, 1e-3, 4e-3),
        case("a", "attention", 1, 1e-3, 1e-3),
        case("b", "concatenations", 0, 2e-3, 3e-3),
    ]
    monkeypatch.setattr(page, "read_result", lambda _: bench.summarise(rows))
    monkeypatch.setattr(page, "origin", lambda _: "*Measured: here.*")
    monkeypatch.setattr(page, "measured", lambda _: [])
    lines = [line for line in page.PAGE.parts()[-1].splitlines() if "`" in line]
    assert [line.split(" | ")[1:] for line in lines] == [
        ["`a`", "2.5", "1", "2.00x", "1.00 to 4.00", "2 |"],
        ["`b`", "3", "2", "1.50x", "1.50", "1 |"],
    ]
