"""Whether this machine is the one that labels were measured on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from costlib.data.dataset import Dataset
from costlib.hardware import Hardware
from tools.evidence import step as step_module
from tools.evidence.labels import is_here, is_labelled_here
from tools.evidence.steps import STEPS


def test_a_hardware_is_here_if_this_machine_can_be_it(hardware: Hardware) -> None:
    mcpu = hardware.target["mcpu"]
    assert is_here(Hardware.local(mcpu=mcpu, num_cores=1))
    assert not is_here(hardware.model_copy(update={"model": "another"}))
    assert not is_here(hardware.model_copy(update={"num_cores": 4096}))
    foreign = hardware.model_copy(update={"target": {"kind": "llvm", "mcpu": "apple-m1"}})
    assert not is_here(foreign)


def test_labels_are_those_of_the_held_out_networks(
    measured_dataset: Dataset, tmp_path: Path
) -> None:
    Dataset.create(tmp_path / "zoo")
    assert not is_labelled_here(tmp_path / "zoo")
    shutil.copytree(measured_dataset.path, tmp_path / "zoo" / "heldout")
    assert is_labelled_here(tmp_path / "zoo")


def test_the_ceiling_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    (step,) = (step for step in STEPS if step.name == "ceiling")
    monkeypatch.setattr(step_module, "is_labelled_here", lambda: False)
    assert step.hindrance(()) == "the held-out tasks were measured on another processor"
    monkeypatch.setattr(step_module, "is_labelled_here", lambda: True)
    assert step.hindrance(()) is None
