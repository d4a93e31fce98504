"""Copies of folders that change while they are copied, and copying that is killed."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from costlib.errors import HubError
from costlib.remote.address import CACHE_VARIABLE, cache_folder
from costlib.remote.file_system import FileSystemPlace
from costlib.remote.mirror import Files, mirror
from costlib.remote.place import Entry, Place, link_file


class Counting(FileSystemPlace):
    """A folder that notes what is fetched from it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"file://{folder}")
        self.fetched: list[str] = []

    def get(self, names: Sequence[str], scratch: Path) -> Iterator[tuple[str, Path]]:
        for name, file in super().get(names, scratch):
            self.fetched.append(name)
            yield name, file


def everything(there: Files) -> Files:
    return {name: there[name] for name in sorted(there)}


def content_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    for name in ("a/one", "a/two", "b/three", "manifest"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def copy(place: Place, tmp_path: Path) -> Path:
    mirror(place, tmp_path / "copy", tmp_path / "state", everything)
    return tmp_path / "copy"


def test_fetched_once(source: Path, tmp_path: Path) -> None:
    place = Counting(source)
    assert content_of(copy(place, tmp_path)) == content_of(source)
    assert place.fetched == ["a/one", "a/two", "b/three", "manifest"]
    copy(place, tmp_path)
    assert len(place.fetched) == 4


def test_same_size_and_another_content(source: Path, tmp_path: Path) -> None:
    place = Counting(source)
    copy(place, tmp_path)
    (source / "a" / "one").write_text("ano")
    (source / "a" / "two").write_text("o/two")
    place.fetched.clear()
    assert content_of(copy(place, tmp_path)) == content_of(source)
    assert place.fetched == ["a/one", "a/two"]


def test_lost_files_and_lost_marks_are_fetched_again(source: Path, tmp_path: Path) -> None:
    place = Counting(source)
    (copy(place, tmp_path) / "a" / "one").unlink()
    place.fetched.clear()
    assert content_of(copy(place, tmp_path)) == content_of(source)
    assert place.fetched == ["a/one"]
    for damage in ("", "[1]", "{"):
        (tmp_path / "state" / "marks.json").write_text(damage)
        assert content_of(copy(place, tmp_path)) == content_of(source)


def test_what_goes_away_meanwhile_is_not_missed(source: Path, tmp_path: Path) -> None:
    class Compacted(Counting):
        """Two files become one after the first listing, before they are fetched."""

        def get(self, names: Sequence[str], scratch: Path) -> Iterator[tuple[str, Path]]:
            if (source / "a").exists():
                (source / "c").write_text("one and two")
                shutil.rmtree(source / "a")
            yield from super().get(names, scratch)

    assert content_of(copy(Compacted(source), tmp_path)) == content_of(source)


def test_a_listing_that_missed_something(source: Path, tmp_path: Path) -> None:
    class Blinking(Counting):
        """The first listing is of neither before nor after."""

        blinked = False

        def entries(self) -> dict[str, Entry]:
            found = super().entries()
            if not self.blinked:
                self.blinked = True
                del found["a/one"]
            return found

    place = Blinking(source)
    there = mirror(place, tmp_path / "copy", tmp_path / "state", everything)
    assert set(there) == set(content_of(source))
    assert content_of(tmp_path / "copy") == content_of(source)


def test_a_place_that_never_rests(source: Path, tmp_path: Path) -> None:
    class Restless(Counting):
        def entries(self) -> dict[str, Entry]:
            (source / f"new-{len(list(source.iterdir()))}").write_text("new")
            return super().entries()

    with pytest.raises(HubError, match=f"^file://{source} changes while it is fetched"):
        copy(Restless(source), tmp_path)


def test_killed_at_each_step(source: Path, tmp_path: Path) -> None:
    """While a file changes without changing its size: the worst case for who remembers."""
    step = finished = 0
    while not finished:
        step += 5
        (source / "a" / "one").write_text(f"{step:05d}")
        child = os.fork()
        if not child:
            left = step

            def count(event: str, _: object) -> None:
                nonlocal left
                left -= event.partition(".")[0] in {"open", "os", "shutil"}
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

            try:
                sys.addaudithook(count)
                copy(FileSystemPlace(f"file://{source}"), tmp_path)
            finally:
                os._exit(0)
        finished = os.WIFEXITED(os.waitpid(child, 0)[1])
        if step % 3 == 0:
            assert content_of(copy(Counting(source), tmp_path)) == content_of(source)
    assert step > 20
    assert content_of(tmp_path / "copy") == content_of(source)


def test_links_are_links_where_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_text("content")
    (tmp_path / "target").write_text("another")
    link_file(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").samefile(tmp_path / "source")

    def refuses(*_: object) -> None:
        raise PermissionError("on another file system")

    monkeypatch.setattr(os, "link", refuses)
    link_file(tmp_path / "source", tmp_path / "target")
    assert not (tmp_path / "target").samefile(tmp_path / "source")
    assert (tmp_path / "target").read_text() == "content"


def test_the_cache_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    url = "s3://bucket/name"
    assert cache_folder("bundles", url).is_relative_to(tmp_path / "xdg" / "costlib" / "bundles")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "mine"))
    assert cache_folder("datasets", url).parent == tmp_path / "mine" / "datasets"
    assert cache_folder("datasets", url) != cache_folder("datasets", f"{url}/else")
