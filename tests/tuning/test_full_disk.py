"""A disk that is full, or a linker that fails, while a run's results are written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from costlib.cli.app import run as run_command
from costlib.data.dataset import Dataset
from costlib.errors import StorageError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.tuning.compiled import CompiledNetwork
from costlib.tuning.database import RECORDS, write_database
from costlib.tuning.session import RESULT, RUN, TASKS
from costlib.tuning.trials import BATCHES, TRIALS
from costlib.workloads import Task, load_network, prepare_network

SOURCE = "matmul 32 32 32"

FAILING_LINKER = """#!/bin/sh
case "$*" in
    */network.so*) echo "ld: final link failed" >&2; exit 1;;
esac
exec c++ "$@"
"""


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, with the files of an earlier run and no space for another."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a disk that is full")
    try:
        (disk / "network.so").write_bytes(b"old")
        (disk / RECORDS).write_bytes(b"")
        (disk / "others").write_bytes(bytes(56 << 10))
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_library_is_whole_or_the_old_one(full_disk: Path, hardware: Hardware) -> None:
    network = CompiledNetwork.build(prepare_network(load_network(SOURCE)), hardware)
    with pytest.raises(StorageError, match=r"network\.so: no space left on device; free some"):
        network.save(full_disk / "network.so")
    assert (full_disk / "network.so").read_bytes() == b"old"
    assert sorted(path.name for path in full_disk.iterdir()) == [RECORDS, "network.so", "others"]


def test_a_database_is_whole_or_not_there(full_disk: Path, matmul: Task, dense: Task) -> None:
    with pytest.raises(StorageError, match="no space left on device"):
        write_database(full_disk, [matmul, dense], [1e-3, 1e-3], [])
    assert not (full_disk / RECORDS).exists()


def test_a_linker_that_fails_loses_nothing(
    bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def costlib(*more: str) -> tuple[int, str, str]:
        arguments = ["tune", SOURCE, "--trials", "4", "--pretrained", str(bundle.path), "--json"]
        monkeypatch.setattr("sys.argv", ["costlib", *arguments, "--out", str(out), *more])
        return run_command(), *capsys.readouterr()

    out = tmp_path / "run"
    linker = tmp_path / "linker"
    linker.write_text(FAILING_LINKER)
    linker.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("CXX", str(linker))
        code, _, told = costlib()
    assert code == 4
    assert told.splitlines()[-1].startswith(f"costlib: cannot write {out}/network.so: linking it")
    assert "ld: final link failed" in told.splitlines()[-1]
    measured = Dataset.open(out / TRIALS).scan().collect()
    assert len(measured) == 4
    assert not (out / RESULT).exists() and not list(out.glob("*.so"))

    for note in (out / RUN, out / TASKS, *(out / BATCHES).iterdir()):
        note.write_bytes(b"")
    code, printed, _ = costlib("--resume")
    assert code == 0
    assert json.loads(printed)["trials"] == 4
    assert Dataset.open(out / TRIALS).scan().collect().equals(measured), "nothing is measured again"
    assert (out / "network.so").is_file()
