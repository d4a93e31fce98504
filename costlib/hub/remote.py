"""Bundles elsewhere: published to a folder, a bucket or the Hugging Face hub, and fetched back.

A fetched bundle is kept in a cache, so it loads without a network the next time. Its files are
checked against the manifest's hashes like those of any bundle.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from costlib.data.remote import HF, cache, filesystem, is_url, remote_errors
from costlib.errors import BundleError, HubError
from costlib.files import storage_errors
from costlib.hub.bundle import CARD, MANIFEST, Bundle, read_manifest
from costlib.identity import content_id

_log = logging.getLogger(__name__)


def publish(bundle: Bundle, to: str) -> str:
    """Copy a bundle to where others can load it from.

    The manifest is written last: whoever loads the bundle meanwhile finds the earlier one or none.

    Parameters
    ----------
    bundle
        The bundle.
    to
        A folder, an address that fsspec knows (``s3://bucket/name``), or ``hf://user/name``.

    Returns
    -------
    str
        What to give :func:`costlib.hub.load_pretrained`.

    Raises
    ------
    HubError
        The place cannot be reached, or refuses.
    StorageError
        The folder cannot be written.
    BundleError
        The folder holds something else.
    """
    if to.startswith(HF):
        with _hub_errors(to):
            from huggingface_hub import HfApi

            api = HfApi()
            api.create_repo(to.removeprefix(HF), exist_ok=True)
            api.upload_folder(
                repo_id=to.removeprefix(HF),
                folder_path=bundle.path,
                commit_message=f"{bundle.name}, made by costlib {bundle.manifest.costlib_version}",
            )
        return to
    if not is_url(to):
        return str(_copy(bundle, Path(to)))
    with _hub_errors(to):
        files, root = filesystem(to)
        for name in [*bundle.manifest.files, CARD, MANIFEST]:
            files.makedirs(f"{root}/{name}".rpartition("/")[0], exist_ok=True)
            files.put_file(str(bundle.path / name), f"{root}/{name}")
    return to


def fetch(url: str) -> Path:
    """Return the folder of a published bundle, fetched unless the cache has it.

    Raises
    ------
    HubError
        It cannot be reached and was never fetched.
    BundleError
        There is none, or it is damaged.
    """
    cached = cache() / "bundles" / content_id(url)
    with storage_errors(cached):
        cached.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".fetching-", dir=cached.parent))
    try:
        with _hub_errors(url):
            _download(url, scratch, cached)
    except HubError as error:
        if not (cached / MANIFEST).is_file():
            raise
        _log.warning("%s; the copy fetched before is used", error)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return cached


def _download(url: str, scratch: Path, cached: Path) -> None:
    """Fetch a bundle into ``scratch`` and let it take the place of ``cached`` if it differs."""
    if url.startswith(HF):
        from huggingface_hub import snapshot_download

        snapshot_download(url.removeprefix(HF), local_dir=scratch)
        shutil.rmtree(scratch / ".cache", ignore_errors=True)
    else:
        files, root = filesystem(url)
        files.get_file(f"{root}/{MANIFEST}", str(scratch / MANIFEST))
        if _same(scratch / MANIFEST, cached / MANIFEST):
            return
        for name in [*read_manifest(scratch).files, CARD]:
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            files.get_file(f"{root}/{name}", str(scratch / name))
    Bundle.load(scratch)
    with storage_errors(cached):
        if cached.exists():
            shutil.rmtree(cached)
        scratch.rename(cached)


def _copy(bundle: Bundle, to: Path) -> Path:
    if to.exists() and (not to.is_dir() or (any(to.iterdir()) and not (to / MANIFEST).is_file())):
        raise BundleError(f"{to} exists and is no bundle; choose another folder")
    with storage_errors(to):
        to.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{to.name}-", dir=to.parent))
        try:
            shutil.copytree(bundle.path, scratch / to.name)
            if to.exists():
                shutil.rmtree(to)
            (scratch / to.name).rename(to)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return to


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


@contextmanager
def _hub_errors(url: str) -> Iterator[None]:
    with remote_errors(url):
        try:
            yield
        except FileNotFoundError:
            raise BundleError(f"there is no bundle at {url}: {MANIFEST} is missing") from None
