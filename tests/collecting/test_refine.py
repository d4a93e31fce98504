"""Rounds of writing, measuring and learning, on this machine and on a device of a fleet."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from costlib.cli.app import run as run_command
from costlib.collecting.plan import CollectionPlan
from costlib.collecting.refine import RefineProgress, refine
from costlib.data.dataset import Dataset
from costlib.errors import BundleError, InputError
from costlib.features.version import LANGUAGE_VERSION
from costlib.generator.language import VOCABULARY
from costlib.generator.model import Generator
from costlib.generator.sentences import write_down
from costlib.generator.transformer import GeneratorConfig
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.hub.bundle import save_bundle
from costlib.measure import link
from costlib.measure.config import MeasureConfig
from costlib.measure.device import Tracker, start_device
from costlib.measure.fleet import Fleet
from costlib.tvm_compat import rpc

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)
PLAN = CollectionPlan(sources=("matmul 48 64 80",), programs_per_task=6, min_flops=0, model="any")


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory, bundle: Bundle) -> Bundle:
    manifest = bundle.manifest
    config = GeneratorConfig(width=32, layers=1)
    return save_bundle(
        tmp_path_factory.mktemp("refine") / "writing",
        bundle.model,
        draft=bundle.draft,
        generator=Generator(VOCABULARY, LANGUAGE_VERSION, config),
        command=manifest.command,
        seed=0,
        hardware=manifest.hardware,
        trained_on=manifest.trained_on,
        metrics=manifest.metrics,
    )


def loss(bundle: Bundle, data: Path) -> float:
    sentences = write_down(Dataset.open(data))
    return float(bundle.require_generator().losses(sentences.tokens, sentences.chosen).mean())


def test_rounds(writing: Bundle, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    seen: list[RefineProgress] = []
    once = refine(writing, PLAN, data, out, rounds=1, epochs=4, config=QUICK)
    twice = refine(
        writing, PLAN, data, out, rounds=2, epochs=4, config=QUICK, on_progress=seen.append
    )
    assert {(p.number, p.what) for p in seen} == {(2, "measuring"), (2, "learning")}
    assert twice.manifest.metrics["refined_rounds"] == 2
    assert "--rounds 2" in twice.manifest.command
    rows = Dataset.open(data).scan().collect()
    assert len(rows) == 12
    assert (rows["origin"] == "generated").sum() >= 10
    assert loss(twice, data) < loss(writing, data)
    assert once.path == twice.path
    assert sorted(one.name for one in tmp_path.iterdir()) == ["data", "out"]
    again = refine(writing, PLAN, data, out, rounds=2, config=QUICK, on_progress=pytest.fail)
    assert again.manifest == twice.manifest
    anew = refine(twice, PLAN, tmp_path / "more", tmp_path / "anew", rounds=1, config=QUICK)
    assert anew.manifest.metrics["refined_rounds"] == 1, (
        "what the given bundle went through is over"
    )
    assert len(Dataset.open(tmp_path / "more").scan().collect()) == 6


def test_learning_goes_on_while_a_fleet_measures(
    writing: Bundle, hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "_OFF", float("inf"))  # Other tests share the cores, too.
    server = rpc.start_tracker()
    tracker = Tracker(host="127.0.0.1", port=server.port, key="refine")
    device = start_device(tracker, hardware)
    try:
        while not rpc.free_devices(tracker.address, tracker.key):
            time.sleep(0.05)
        with Fleet(tracker) as fleet:
            refined = refine(
                writing,
                PLAN,
                tmp_path / "data",
                tmp_path / "out",
                rounds=2,
                fleet=fleet,
                config=QUICK,
            )
    finally:
        device.terminate()
        server.terminate()
    assert refined.manifest.metrics["refined_rounds"] == 2
    assert len(Dataset.open(tmp_path / "data").scan().collect()) == 12


def test_the_command(
    writing: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folders = ["--data", str(tmp_path / "data"), "--out", str(tmp_path / "out")]
    command = ["costlib", "refine", "matmul 16 16 16", "--pretrained", str(writing.path), *folders]
    monkeypatch.setattr("sys.argv", [*command, "--rounds", "1", "--programs", "4", "--json"])
    assert run_command() == 0
    assert json.loads(capsys.readouterr().out) == {"bundle": str(tmp_path / "out"), "rounds": 1}
    monkeypatch.setattr("sys.argv", [*command, "--programs", "0"])
    assert run_command() == 2
    assert "--programs is 0; it must be at least 1" in capsys.readouterr().err


def test_wrong_inputs(writing: Bundle, bundle: Bundle, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="at least 1"):
        refine(writing, PLAN, tmp_path / "data", tmp_path / "out", rounds=0)
    with pytest.raises(InputError, match="has no generator"):
        refine(bundle, PLAN, tmp_path / "data", tmp_path / "out")
    with pytest.raises(BundleError, match="was not refined here"):
        refine(writing, PLAN, tmp_path / "data", bundle.path)
    assert not (tmp_path / "data").exists()
