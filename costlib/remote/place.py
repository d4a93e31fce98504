"""What can be done with the folder at an address."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from costlib.errors import InputError
from costlib.files import flush_file, replacing_folder, storage_errors
from costlib.remote.address import HF


class Entry(NamedTuple):
    """A file at an address.

    Attributes
    ----------
    size
        In bytes.
    mark
        Another one means another content; ``None`` where the place has nothing of the kind.
    """

    size: int
    mark: str | None


class Place(ABC):
    """The folder at an address. Its files go by their path below it, with slashes.

    Attributes
    ----------
    url
        The address.
    keeps_history
        Whether what is written over can be brought back.
    """

    keeps_history = False

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def revision(self) -> str | None:
        """The state that was looked at, if the place keeps a history."""
        return None

    @abstractmethod
    def entries(self) -> dict[str, Entry]:
        """List all files that are there now; none if there is no such folder."""

    @abstractmethod
    def get(self, names: Sequence[str], scratch: Path) -> Iterator[tuple[str, Path]]:
        """Fetch files, one after the other, in this order.

        Parameters
        ----------
        names
            Of the files; they are trusted not to lead out of the folder.
        scratch
            A folder on the file system that the files are for.

        Yields
        ------
        tuple of str and Path
            A name, and its file below ``scratch``, to be moved away before the next is asked
            for. It may be a hard link into another cache, so its content must not be changed.

        Raises
        ------
        FileNotFoundError
            One is not there.
        """

    @abstractmethod
    def put(self, folder: Path, names: Sequence[str], gone: Sequence[str], message: str) -> None:
        """Copy files of a folder to the place, and remove others there.

        Parameters
        ----------
        folder
            The folder here; its counterpart is made if missing.
        names
            What to copy, in this order where it cannot be done in one step.
        gone
            What to remove there, after that.
        message
            What the place's history will say, if it has one.
        """

    def read(self, name: str) -> bytes:
        """Return the content of a file; raise ``FileNotFoundError`` if it is not there."""
        with tempfile.TemporaryDirectory() as scratch:
            ((_, file),) = self.get([name], Path(scratch))
            return file.read_bytes()


def open_place(url: str, repo_type: str) -> Place:
    """Return the folder at an address; nothing is asked there yet.

    Parameters
    ----------
    url
        ``hf://user/name``, or an address that fsspec knows.
    repo_type
        ``"model"`` or ``"dataset"``: what kind of repository it is on the Hugging Face hub.
    """
    if url.startswith(HF):
        from costlib.remote.hugging_face import HuggingFacePlace

        return HuggingFacePlace(url, repo_type)
    from costlib.remote.file_system import FileSystemPlace

    return FileSystemPlace(url)


def addresses_below(where: str, library: str) -> list[str]:
    """List the addresses of folders that may hold bundles.

    Parameters
    ----------
    where
        ``hf://`` for the whole Hugging Face hub, ``hf://user`` for what one user has there; or a
        folder that fsspec knows, for those in it.
    library
        Of the hub's models, those whose card names this library.
    """
    if where.startswith(HF):
        from costlib.remote.hugging_face import models_of

        return models_of(library, where.removeprefix(HF).strip("/") or None)
    from costlib.remote.file_system import folders_in

    return folders_in(where)


def fetch_files(place: Place, names: Sequence[str], folder: Path, scratch: Path) -> None:
    """Fetch files into a folder, each in one step, in this order.

    Parameters
    ----------
    place
        Where they are.
    names
        Of the files; they must not lead out of the folder.
    folder
        Where they go.
    scratch
        A folder on the same file system, of which nobody else makes use.

    Raises
    ------
    FileNotFoundError
        One is not there.
    StorageError
        One could not be written.
    """
    for name, file in place.get(names, scratch):
        with storage_errors(folder / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            flush_file(file)
            file.replace(folder / name)


def copy_files(
    source: Path, names: Sequence[str], target: Path, check: Callable[[Path], object]
) -> None:
    """Copy files of a folder, and let them take the place of another folder in one step.

    Parameters
    ----------
    source
        The folder.
    names
        Of the files.
    target
        What is replaced; it must not hold ``source``.
    check
        Called with the copy before it gets there; what it raises leaves all as it was.

    Raises
    ------
    InputError
        ``source`` is in ``target``, and would be gone.
    StorageError
        The copy cannot be written.
    """
    if source.resolve().is_relative_to(target.resolve()):
        raise InputError(f"{source} is in {target}, which it cannot take the place of")
    with storage_errors(target), replacing_folder(target) as new:
        for name in names:
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, new / name)
        check(new)


def link_file(source: Path, target: Path) -> None:
    """Make ``target`` a hard link to a file, or a copy where there can be none."""
    target.unlink(missing_ok=True)
    with suppress(OSError):
        os.link(source, target)
        return
    shutil.copyfile(source, target)
