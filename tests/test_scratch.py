"""Temporary folders, of processes that are killed, too."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from costlib.scratch import ScratchFolder

WAIT = """
import sys, time
from costlib.scratch import ScratchFolder
with ScratchFolder() as folder:
    (folder / "library.so").write_text("large")
    print(folder, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_those_of_the_killed_are_removed_those_of_the_living_stay(temporary: Path) -> None:
    others = [
        subprocess.Popen([sys.executable, "-c", WAIT], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    folders = [Path(other.stdout.readline().strip()) for other in others if other.stdout]
    (temporary / "costlib-mine").mkdir()
    others[0].kill()
    others[0].communicate()
    assert all(folder.is_dir() for folder in folders)
    with ScratchFolder() as folder:
        assert set(temporary.iterdir()) == {
            folder, folders[1], temporary / "costlib-mine"
        }  # fmt: skip
        assert (folders[1] / "library.so").exists()
    others[1].kill()
    others[1].communicate()
    assert not folder.exists()
