"""What is kept of the bundles and datasets that were fetched: listed, and removed."""

from __future__ import annotations

import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from costlib.errors import StorageError, UnknownNameError
from costlib.files import locked, storage_errors, write_file
from costlib.frozen import Frozen
from costlib.remote.address import KINDS, TASK_LISTS, cache_folder, cache_root

_ADDRESS = ".address"
"""A copy's file with the address that it was fetched from."""


class CachedCopy(Frozen):
    """A copy in the cache.

    Attributes
    ----------
    kind
        ``"bundles"`` or ``"datasets"``.
    address
        Where it was fetched from; ``None`` if an older costlib did not note it.
    folder
        Where it lies.
    size_bytes
        Of all its files.
    fetched
        When it was fetched or changed last: ISO 8601, UTC.
    """

    kind: str
    address: str | None
    folder: Path
    size_bytes: int
    fetched: str


def note_address(copy: Path, url: str) -> None:
    """Note in a copy where it was fetched from; one that cannot be written stays without."""
    if not (copy / _ADDRESS).exists():
        with suppress(StorageError):
            write_file(copy / _ADDRESS, url.encode())


def cached_copies() -> list[CachedCopy]:
    """Return what is in the cache, bundles first."""
    found = []
    for kind in KINDS:
        for folder in sorted((cache_root() / kind).glob("[!.]*/")):
            files = [path for path in folder.rglob("*") if path.is_file()]
            changed = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
            found.append(
                CachedCopy(
                    kind=kind,
                    address=_address(folder),
                    folder=folder,
                    size_bytes=sum(path.stat().st_size for path in files),
                    fetched=changed.isoformat(timespec="seconds"),
                )
            )
    return found


def clear_cache(address: str | None = None) -> list[CachedCopy]:
    """Remove what was fetched from an address, or everything; return what it was.

    Everything includes the lists of what networks consist of.

    Raises
    ------
    UnknownNameError
        Nothing of that address is in the cache.
    StorageError
        It cannot be removed.
    """
    copies = cached_copies()
    if address is not None:
        folders = {cache_folder(kind, address) for kind in KINDS}
        known = [copy.address for copy in copies if copy.address]
        copies = [copy for copy in copies if copy.folder in folders]
        if not copies:
            raise UnknownNameError("address in the cache", address, known)
    for copy in copies:
        state = copy.folder.with_name(f".{copy.folder.name}")
        with storage_errors(copy.folder), locked(state):
            shutil.rmtree(copy.folder)
            shutil.rmtree(state)
    lists = cache_root() / TASK_LISTS
    if address is None and lists.exists():
        with storage_errors(lists):
            shutil.rmtree(lists)
    return copies


def _address(folder: Path) -> str | None:
    with suppress(OSError):
        return (folder / _ADDRESS).read_text()
    return None
