from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from costlib import files
from costlib.errors import StorageError


def everything(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        files.write_json(tmp_path / "file" / "x.json", {})


def test_json_is_replaced_in_one_step(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    files.write_json(file, {"a": 1})
    files.write_json(file, {"a": 2})
    assert file.read_text() == '{\n  "a": 2\n}\n'
    assert everything(tmp_path) == ["x.json"]


def test_only_what_dead_writers_left_is_removed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from costlib import files;"
        "kept = files._open_scratch(Path(sys.argv[1])); print(kept[0].name, flush=True);"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        name = writer.stdout.readline().strip()
        files.remove_stale(tmp_path)
        assert everything(tmp_path) == [name]
        writer.kill()
        writer.wait()
    files.remove_stale(tmp_path)
    assert everything(tmp_path) == []


def test_a_lock_is_exclusive_and_ends_with_its_body(tmp_path: Path) -> None:
    code = "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], os.O_RDONLY), 6)"
    attempt = [sys.executable, "-c", code, str(tmp_path)]
    with files.locked(tmp_path):
        assert subprocess.run(attempt, capture_output=True, check=False).returncode != 0
    assert subprocess.run(attempt, check=False).returncode == 0


def test_devices_are_written_into_and_stay() -> None:
    with pytest.raises(StorageError, match="no space left on device"):
        files.write_file(Path("/dev/full"), b"text")
    files.write_file(Path("/dev/null"), b"text")
    assert Path("/dev/full").is_char_device() and Path("/dev/null").is_char_device()
