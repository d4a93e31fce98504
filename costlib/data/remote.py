"""Datasets elsewhere: in a bucket, on the Hugging Face hub, or wherever fsspec reaches.

A dataset's parts never change once they are written, so a copy is brought up to date by adding
the parts that are new and removing those that are gone. A fetched dataset is kept in a cache and
opens without a network the next time.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from costlib.data.manifest import MANIFEST
from costlib.errors import CostlibError, DatasetError, HubError
from costlib.files import storage_errors
from costlib.identity import content_id
from costlib.schema import TABLES

if TYPE_CHECKING:
    from costlib.data.dataset import Dataset

CACHE_VARIABLE = "COSTLIB_CACHE"
"""Environment variable with the folder of the cache; ``~/.cache/costlib`` by default."""

HF = "hf://"
"""How addresses on the Hugging Face hub begin."""

_FOLDERS = {"hardware", *TABLES}
_HELD_OUT = "heldout"
_LARGEST_JSON = 1 << 20
_LARGEST_PART = 8 << 30

_log = logging.getLogger(__name__)


def is_url(name: object) -> bool:
    """Whether this is an address, such as ``hf://user/name`` or ``s3://bucket/name``."""
    return "://" in str(name)


def publish_dataset(dataset: Dataset, to: str) -> str:
    """Copy a dataset to where others can read it, or bring such a copy up to date.

    Parameters
    ----------
    dataset
        The dataset; others may append to it meanwhile.
    to
        An address that fsspec knows (``s3://bucket/name``), or ``hf://user/name``.

    Returns
    -------
    str
        What to give :meth:`costlib.data.dataset.Dataset.open`.

    Raises
    ------
    HubError
        The place cannot be reached, or refuses.
    """
    with remote_errors(to), dataset.reading():
        files, root = filesystem(to, make=True)
        there = _listed(files, root)
        here = {
            name: path.stat().st_size
            for path in sorted(dataset.path.rglob("*"))
            if path.is_file() and _belongs(name := path.relative_to(dataset.path).as_posix())
        }
        for name in _manifest_last(here):
            if name.endswith(".parquet") and there.get(name) == here[name]:
                continue
            files.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
            files.put_file(str(dataset.path / name), f"{root}/{name}")
        for name in there.keys() - here.keys():
            if name.endswith(".parquet"):
                files.rm_file(f"{root}/{name}")
    return to


def fetch_dataset(url: str) -> Path:
    """Return the folder of a published dataset, brought up to date if its place can be reached.

    Raises
    ------
    HubError
        It cannot be reached and was never fetched.
    DatasetError
        There is none.
    """
    cached = cache() / "datasets" / content_id(url)
    try:
        with remote_errors(url):
            files, root = filesystem(url)
            there = _listed(files, root)
            if MANIFEST not in there:
                raise DatasetError(f"there is no dataset at {url}: {MANIFEST} is missing")
            _download(files, root, there, cached)
    except HubError as error:
        if not (cached / MANIFEST).is_file():
            raise
        _log.warning("%s; the copy fetched before is used", error)
    return cached


def _download(files: Any, root: str, there: Mapping[str, int], cached: Path) -> None:
    for name in _manifest_last(there):
        target, part = cached / name, name.endswith(".parquet")
        if part and target.is_file() and target.stat().st_size == there[name]:
            continue
        if there[name] > (_LARGEST_PART if part else _LARGEST_JSON):
            raise DatasetError(f"{name} has {there[name]:,} bytes, too many to be what it should")
        with storage_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix=".fetching-", dir=cached))
        try:
            files.get_file(f"{root}/{name}", str(scratch / "file"))
            with storage_errors(target):
                (scratch / "file").replace(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    with storage_errors(cached):
        for path in sorted(cached.rglob("*.parquet")):
            name = path.relative_to(cached).as_posix()
            if _belongs(name) and name not in there:
                path.unlink()


def _listed(files: Any, root: str) -> dict[str, int]:
    """Return the sizes of a dataset's files, by their names below ``root``."""
    if not files.exists(root):
        return {}
    found = files.find(root, detail=True)
    sizes = {path[len(root) + 1 :]: int(entry["size"]) for path, entry in found.items()}
    return {name: size for name, size in sizes.items() if _belongs(name)}


def _belongs(name: str) -> bool:
    """Whether a file is one of a dataset's, and nowhere else than it should be."""
    parts = PurePosixPath(name).parts
    if parts[:1] == (_HELD_OUT,):
        parts = parts[1:]
    if not parts or any(part == ".." or part.startswith((".", "/")) for part in parts):
        return False
    if len(parts) == 1:
        return parts[0] in (MANIFEST, "README.md")
    return parts[0] in _FOLDERS and len(parts) <= 3 and parts[-1].endswith((".json", ".parquet"))


def _manifest_last(names: Mapping[str, int]) -> list[str]:
    """Order files so that whoever sees the manifest sees what it is the manifest of."""
    return sorted(names, key=lambda name: (name == MANIFEST, name.endswith(MANIFEST), name))


def filesystem(url: str, *, make: bool = False) -> tuple[Any, str]:
    """Return fsspec's file system for an address, and the path there.

    On the Hugging Face hub that is a repository of datasets, which is made if ``make`` is set.
    """
    if url.startswith(HF):
        from huggingface_hub import HfApi, HfFileSystem

        name = url.removeprefix(HF).removeprefix("datasets/").rstrip("/")
        if make:
            HfApi().create_repo(name, repo_type="dataset", exist_ok=True)
        return HfFileSystem(), f"datasets/{name}"
    from fsspec.core import url_to_fs

    files, root = url_to_fs(url)
    return files, str(root).rstrip("/")


def cache() -> Path:
    """Return the folder of what was fetched."""
    return Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "costlib")


@contextmanager
def remote_errors(url: str) -> Iterator[None]:
    """Turn whatever the libraries beneath raise into a :class:`HubError` about ``url``."""
    try:
        yield
    except CostlibError:
        raise
    except ImportError as error:
        raise HubError(f"{url} needs a package that is not installed: {error}") from None
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise HubError(f"{url} cannot be reached: {reason}") from None
