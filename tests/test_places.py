"""Where something is to be written: asked before, not found out afterwards."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from costlib.errors import InputError, StorageError
from costlib.places import LOCK, check_writable, held, kind_at, refuse_others

HOLD = """
import sys, time
from pathlib import Path
from costlib.places import held
with held(Path(sys.argv[1]), "tuned"):
    print("held", flush=True)
    time.sleep(60)
"""

AS_NOBODY = """
import os, sys
from pathlib import Path
from costlib.errors import StorageError
from costlib.places import check_writable
if os.getuid() == 0:
    os.setuid(65534)
try:
    check_writable(Path(sys.argv[1]))
except StorageError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [("dataset.json", "a dataset"), ("bundle.json", "a bundle"), ("run.json", "a run")],
)
def test_what_a_folder_holds(tmp_path: Path, name: str, kind: str) -> None:
    assert kind_at(tmp_path) is kind_at(tmp_path / "missing") is None
    (tmp_path / name).write_text("")
    assert kind_at(tmp_path) == kind
    refuse_others(tmp_path, kind)
    with pytest.raises(InputError, match=f"holds {kind}; choose another folder"):
        refuse_others(tmp_path, "something else")
    with pytest.raises(InputError, match="is a file"):
        refuse_others(tmp_path / name, kind)


def test_what_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("missing")
    for place in ("", "file", "link", "a/b/c"):
        check_writable(tmp_path / place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("place", ["file/below", "file/far/below"])
def test_a_file_is_in_the_way(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="not a directory"):
        check_writable(tmp_path / place)


@pytest.mark.parametrize("place", [".", "below/it"])
def test_no_permission(place: str) -> None:
    command = [sys.executable, "-c", AS_NOBODY, f"/proc/1/{place}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout.startswith("cannot write /proc/1"), done.stderr


def test_only_one_is_at_work_and_a_kill_lets_go(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "run"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    told = f"is being tuned by process {other.pid} on "
    with pytest.raises(InputError, match=told), held(folder, "tuned"):
        pass
    other.send_signal(signal.SIGKILL)
    other.communicate()
    assert (folder / LOCK).exists()
    with held(folder, "tuned"):
        (folder / "result").write_text("")
    assert [path.name for path in folder.iterdir()] == ["result"]


def test_a_folder_in_which_nothing_was_written_is_gone(tmp_path: Path) -> None:
    with pytest.raises(KeyError), held(tmp_path / "a" / "b", "tuned"):
        assert (tmp_path / "a" / "b").is_dir()
        raise KeyError
    assert list(tmp_path.iterdir()) == []
