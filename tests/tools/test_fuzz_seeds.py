"""The files that the fuzzer damages are ones that its loaders read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.fuzz.loaders import LOADERS
from tools.fuzz.seeds import seed_files


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_reads_its_undamaged_files(name: str, work: Path) -> None:
    seeds, copy = work / "seeds" / name, work / f"copy-{name}"
    seed_files(name, seeds)
    shutil.copytree(seeds, copy)
    LOADERS[name](copy)
