"""Places that fsspec reaches: buckets, servers, folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs

from costlib.remote.place import Entry, Place

_MARKS = ("ETag", "etag", "md5", "sha", "checksum", "mtime", "LastModified", "modified", "created")
"""Where file systems say what tells a file's contents apart, the best first."""


class FileSystemPlace(Place):
    """A folder on one of fsspec's file systems. Files are written one after the other."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._files, root = url_to_fs(url)
        self._root = str(root).rstrip("/")

    def entries(self) -> dict[str, Entry]:  # noqa: D102
        self._files.invalidate_cache()
        try:
            self._files.info(self._root)  # `find` takes a place out of reach for an empty one.
        except FileNotFoundError:
            return {}
        found = self._files.find(self._root, detail=True)
        return {self._name(path): _entry(details) for path, details in found.items()}

    def get(self, names: Sequence[str], scratch: Path) -> Iterator[tuple[str, Path]]:  # noqa: D102
        for name in names:
            self._files.get_file(self._path(name), str(scratch / "file"))
            yield name, scratch / "file"

    def put(  # noqa: D102
        self, folder: Path, names: Sequence[str], gone: Sequence[str], message: str
    ) -> None:
        for name in names:
            self._files.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(folder / name), self._path(name))
        for name in gone:
            self._files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _name(self, path: str) -> str:
        return path[len(self._root) + 1 :]


def folders_in(url: str) -> list[str]:
    """List the addresses of the folders in a folder; none if there is no such folder."""
    files, root = url_to_fs(url)
    try:
        found = files.ls(root, detail=True)
    except FileNotFoundError:
        return []
    names = [str(one["name"]).rstrip("/") for one in found if one["type"] == "directory"]
    return [f"{url.rstrip('/')}/{name.rpartition('/')[2]}" for name in names]


def _entry(details: Mapping[str, Any]) -> Entry:
    mark = next((details[key] for key in _MARKS if details.get(key) is not None), None)
    return Entry(int(details["size"]), None if mark is None else str(mark))
