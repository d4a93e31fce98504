"""Datasets elsewhere: in a bucket, on the Hugging Face hub, or wherever fsspec reaches.

A dataset's parts never change once they are written, so a copy is brought up to date by adding
the parts that are new and removing those that are gone. A fetched dataset is kept in a cache and
opens without a network the next time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import costlib
from costlib.data.manifest import MANIFEST, PROVENANCE, read_info
from costlib.errors import DatasetError, HubError
from costlib.files import locked, remove_stale, restore_folder, storage_errors
from costlib.places import check_free
from costlib.remote.address import cache_folder, is_url, nothing_at, remote_errors
from costlib.remote.cache import note_address
from costlib.remote.mirror import Files, mirror
from costlib.remote.place import Entry, Place, copy_files, open_place
from costlib.schema import TABLES

if TYPE_CHECKING:
    from costlib.data.dataset import Dataset

_FOLDERS = {"hardware", *TABLES}
_HELD_OUT = "heldout"
_PART = ".parquet"
_LARGEST_JSON = 1 << 20
_LARGEST_PART = 8 << 30

_log = logging.getLogger(__name__)


def publish_dataset(dataset: Dataset, to: str, *, replace: bool = False) -> str:
    """Copy a dataset to where others can read it, or bring such a copy up to date.

    On the Hugging Face hub that is one commit. Elsewhere the manifest is written last, and parts
    that are gone are removed after that.

    Parameters
    ----------
    dataset
        The dataset; others may append to it meanwhile.
    to
        A folder, an address that fsspec knows (``s3://bucket/name``), or ``hf://user/name``.
    replace
        Take the place of another dataset that is there, in a folder also of a bundle.

    Returns
    -------
    str
        What to give :meth:`costlib.data.dataset.Dataset.open`.

    Raises
    ------
    HubError
        The place cannot be reached, or refuses.
    DatasetError
        It holds something else.
    StorageError
        The folder cannot be written.
    """
    with remote_errors(to), ExitStack() as stack:
        for one in (dataset, dataset.held_out()):
            if one is not None:
                stack.enter_context(one.reading())
        if not is_url(to) and not _is_at(Path(to), dataset):
            restore_folder(Path(to))
            check_free(Path(to), "dataset", replace=replace, error=DatasetError)
            copy_files(dataset.path, _files_of(dataset.path), Path(to), read_info)
            return to
        place = open_place(to, "dataset")
        entries = place.entries()
        _check_address(place, entries, dataset, replace)
        there = {name: entry.size for name, entry in entries.items() if _belongs(name)}
        here = {name: (dataset.path / name).stat().st_size for name in _files_of(dataset.path)}
        place.put(
            dataset.path,
            [n for n in _manifest_last(here) if not n.endswith(_PART) or there.get(n) != here[n]],
            [name for name in there.keys() - here.keys() if name.endswith(_PART)],
            f"{dataset.path.name}, by costlib {costlib.__version__}",
        )
    return to


def _is_at(folder: Path, dataset: Dataset) -> bool:
    """Whether a folder holds a state of the same dataset: its manifest never changes."""
    try:
        return read_info(folder) == dataset.info
    except DatasetError:
        return False


def _check_address(place: Place, there: Files, dataset: Dataset, replace: bool) -> None:
    """Refuse an address that holds something else than a state of the same dataset."""
    if "bundle.json" in there:
        raise DatasetError(f"{place.url} holds a bundle; choose another address")
    if MANIFEST not in there or replace:
        return
    if place.read(MANIFEST) != (dataset.path / MANIFEST).read_bytes():
        raise DatasetError(
            f"{place.url} holds another dataset; --replace puts this one in its place, "
            "or choose another address"
        )


def fetch_dataset(url: str) -> Path:
    """Return the folder of a published dataset, brought up to date if its place can be reached.

    The copy can be trained on, which writes features beside the parts.

    Raises
    ------
    HubError
        It cannot be reached and was never fetched.
    DatasetError
        There is none.
    StorageError
        The copy cannot be written.
    """
    copy = cache_folder("datasets", url)
    state = copy.with_name(f".{copy.name}")
    try:
        with remote_errors(url), locked(state):
            remove_stale(state)
            there = mirror(open_place(url, "dataset"), copy, state, lambda all_: _chosen(url, all_))
            _remove_others(copy, there)
    except HubError as error:
        if not (copy / MANIFEST).is_file():
            raise
        _log.warning("%s; the copy fetched before is used", error)
    note_address(copy, url)
    return copy


def _chosen(url: str, there: Files) -> Files:
    """Return the files of a dataset, the manifest last."""
    if MANIFEST not in there:
        raise DatasetError(nothing_at(url, "dataset", MANIFEST))
    chosen = {}
    for name in _manifest_last(name for name in there if _belongs(name)):
        size, mark = there[name]
        is_part = name.endswith(_PART)
        if size > (_LARGEST_PART if is_part else _LARGEST_JSON):
            raise DatasetError(f"{name} has {size:,} bytes, too many to be what it should")
        chosen[name] = Entry(size, mark or ("a part" if is_part else None))
    return chosen


def _remove_others(copy: Path, there: Files) -> None:
    """Remove what of a copy is gone at its place, once nobody reads it."""
    gone = [name for name in _files_of(copy) if name not in there]
    held_out = [name for name in gone if name.startswith(f"{_HELD_OUT}/")]
    inner = copy / _HELD_OUT
    for folder, names in ((inner, held_out), (copy, set(gone).difference(held_out))):
        if names:
            with locked(folder), storage_errors(folder):
                for name in names:
                    (copy / name).unlink(missing_ok=True)


def _files_of(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return [name for name in found if _belongs(name)]


def _belongs(name: str) -> bool:
    """Whether a file is one of a dataset's, and nowhere else than it should be."""
    parts = PurePosixPath(name).parts
    if parts[:1] == (_HELD_OUT,):
        parts = parts[1:]
    if not parts or any(part == ".." or part.startswith((".", "/")) for part in parts):
        return False
    if len(parts) == 1:
        return parts[0] in (MANIFEST, PROVENANCE, "README.md")
    return parts[0] in _FOLDERS and len(parts) <= 3 and parts[-1].endswith((".json", _PART))


def _manifest_last(names: Iterable[str]) -> list[str]:
    """Order files so that whoever sees the manifest sees what it is the manifest of."""
    return sorted(names, key=lambda name: (name == MANIFEST, name.endswith(MANIFEST), name))
