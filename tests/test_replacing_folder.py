"""A folder takes the place of another: whole or not at all, whatever happens in between."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import Popen

from costlib import files
from costlib.errors import StorageError
from costlib.files import replacing_folder, restore_folder

NAMES = ("manifest.json", "model/weights", "model/deep/config")


def fill(folder: Path, tag: str) -> None:
    for name in NAMES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(tag)


def replace(target: Path, tag: str) -> None:
    with replacing_folder(target) as new:
        fill(new, tag)


def content_of(folder: Path) -> str:
    """Return what all files of a folder say, with nothing missing and nothing else there."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == set(NAMES)
    (tag,) = {(folder / name).read_text() for name in NAMES}
    return tag


def killed_at(step: int, action: Callable[[], None]) -> bool:
    """Do something in a child that is killed just before its ``step``-th call of the system.

    Returns whether it was, or had finished before.
    """
    child = os.fork()
    if not child:
        left = step

        def count(event: str, _: object) -> None:
            nonlocal left
            if event.partition(".")[0] in {"open", "os", "fcntl", "ctypes", "shutil"}:
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(count)
            action()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.fixture(params=["exchange", "without exchange"])
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param == "without exchange":
        monkeypatch.setattr(files, "_exchange", lambda *_: False)
        return False
    return True


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Path]:
    """A folder's path; in the end nothing but that folder may be there."""
    yield tmp_path / "target"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_replaced(target: Path, exchange: bool) -> None:
    for tag in ("first", "second", "third"):
        replace(target, tag)
        assert content_of(target) == tag


def test_killed_at_each_step(target: Path, exchange: bool) -> None:
    replace(target, "old")
    seen = []
    step = 0
    while killed_at(step := step + 1, lambda: replace(target, "new")):
        if not exchange:
            restore_folder(target)
        seen.append(content_of(target))
        replace(target, "old")  # Which also removes what is left of the killed one.
    assert seen.count("old") > 10 and seen.count("new") > 3
    assert sorted(seen, reverse=True) == seen, "old, until it is new"
    assert content_of(target) == "new"


def test_killed_at_each_step_of_the_first_time(target: Path) -> None:
    step = 0
    seen = []
    while killed_at(step := step + 1, lambda: replace(target, "new")):
        seen.append(content_of(target) if target.exists() else "")
        replace(target, "old")
        shutil.rmtree(target)
    assert seen.count("") > 10 and seen.count("new") > 3


def test_killed_while_it_removes_leftovers(target: Path, exchange: bool) -> None:
    step = 0
    leftover = set()
    while killed_at(step := step + 13, lambda: replace(target, "new")):
        replace(target, "old")
        killed_at(step, lambda: replace(target, "new"))
        leftover.add(len(list(target.parent.iterdir())) - 1)
        second = 0
        while killed_at(second := second + 17, lambda: replace(target, "newer")):
            restore_folder(target)
            assert content_of(target) in {"old", "new", "newer"}
        assert content_of(target) == "newer"
    assert 1 in leftover


def test_killed_while_it_restores(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def dies(*_: object) -> bool:
        target.rename(next(target.parent.glob(".tmp-*")) / "old-0")
        os.kill(os.getpid(), signal.SIGKILL)
        return True

    replace(target, "old")
    monkeypatch.setattr(files, "_exchange", dies)
    assert killed_at(10_000, lambda: replace(target, "new"))
    monkeypatch.undo()
    assert not target.exists()
    step = 0
    while killed_at(step := step + 1, lambda: restore_folder(target)):
        pass
    assert step > 2
    assert content_of(target) == "old"
    replace(target, "new")


def test_what_the_body_raises_changes_nothing(target: Path) -> None:
    replace(target, "old")
    with pytest.raises(KeyError), replacing_folder(target) as new:
        fill(new, "new")
        raise KeyError
    assert content_of(target) == "old"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_file_cannot_be_flushed(target: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(target, "old")
    fsync = os.fsync
    for bad in range(len(NAMES)):
        flushes = iter(range(100))

        def flush(descriptor: int, flushes: Iterator[int] = flushes, bad: int = bad) -> None:
            if stat.S_ISREG(os.fstat(descriptor).st_mode) and next(flushes) == bad:
                raise OSError(code, os.strerror(code))
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", flush)
        with pytest.raises(StorageError, match=f"cannot write {target}: ") as error:
            replace(target, "new")
        assert "\n" not in str(error.value)
        assert content_of(target) == "old"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EBUSY, errno.EXDEV])
def test_the_exchange_fails(target: Path, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(target, "old")

    def fails(*_: object) -> bool:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "_exchange", fails)
    with pytest.raises(StorageError):
        replace(target, "new")
    assert content_of(target) == "old"


def test_no_space_for_the_scratch_folder(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace(target, "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for broken in ("mkdir", "open"):
        monkeypatch.setattr(Path, broken, full)
        with pytest.raises(StorageError, match=r"no space left.*; free some space"):
            replace(target, "new")
        monkeypatch.undo()
    assert content_of(target) == "old"


def test_a_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="not a directory"):
        replace(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_link_stays_a_link(tmp_path: Path, exchange: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere/real")
    for tag in ("first", "second"):
        replace(tmp_path / "link", tag)
        assert (tmp_path / "link").is_symlink()
        assert content_of(tmp_path / "elsewhere" / "real") == tag


def test_leftovers_of_others_stay(tmp_path: Path) -> None:
    """Of writers that are at work, and of folders whose names begin alike."""
    replace(tmp_path / "a", "old")
    replace(tmp_path / "a-b", "old")
    with replacing_folder(tmp_path / "a") as new, replacing_folder(tmp_path / "a-b") as other:
        fill(new, "new")
        fill(other, "new")
        replace(tmp_path / "a", "newest")
        assert content_of(new) == content_of(other) == "new"
    assert content_of(tmp_path / "a") == content_of(tmp_path / "a-b") == "new"


READ = """
import os, sys
from pathlib import Path
target = Path(sys.argv[1])
seen = 0
print("reading", flush=True)
while not (target.parent / "stop").exists():
    assert target.is_dir(), "it is always there"
    folder = os.open(target, os.O_RDONLY)
    tags = set()
    try:
        for name in sys.argv[2:]:
            with open(os.open(name, os.O_RDONLY, dir_fd=folder)) as file:
                tags.add(file.read())
    except FileNotFoundError:
        assert os.stat(target).st_ino != os.fstat(folder).st_ino, "half of it was there"
    else:
        assert len(tags) == 1, tags
        seen += 1
    os.close(folder)
print(seen)
"""

WRITE = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1])))
from test_replacing_folder import replace
for number in range(40):
    replace(Path(sys.argv[2]), f"{sys.argv[3]} {number}")
"""


def test_two_writers_and_a_reader_at_once(tmp_path: Path) -> None:
    target = tmp_path / "target"
    replace(target, "old")
    reader = Popen(
        [sys.executable, "-c", READ, str(target), *NAMES], stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    reader.stdout.readline()
    command = [sys.executable, "-c", WRITE, str(Path(__file__).parent), str(target)]
    writers = [Popen([*command, name]) for name in ("one", "other")]
    codes = [writer.wait() for writer in writers]
    (tmp_path / "stop").touch()
    output, _ = reader.communicate()
    assert codes == [0, 0] and reader.returncode == 0
    assert int(output) > 0
    assert content_of(target) in {"one 39", "other 39"}
    assert {path.name for path in tmp_path.iterdir()} == {"target", "stop"}
