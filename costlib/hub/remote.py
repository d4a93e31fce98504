"""Bundles elsewhere: published to a folder, a bucket or the Hugging Face hub, and fetched back.

A fetched bundle is kept in a cache, so it loads without a network the next time. Its files are
checked against the manifest's hashes like those of any bundle.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path, PurePosixPath

from costlib.errors import BundleError, HubError
from costlib.files import first_line, replacing_folder, restore_folder
from costlib.hub.bundle import CARD, PARTS, Bundle, holds_bundle
from costlib.hub.manifest import MANIFEST, parse_manifest, sha256_of
from costlib.places import check_free
from costlib.remote.address import cache_folder, is_url, nothing_at, remote_errors
from costlib.remote.cache import note_address
from costlib.remote.place import Place, copy_files, fetch_files, link_file, open_place

_REPLACE = "--replace puts this one in its place, or choose another address"

_log = logging.getLogger(__name__)


def publish(bundle: Bundle, to: str, *, replace: bool = False) -> str:
    """Copy a bundle to where others can load it from.

    A folder is replaced in one step, and on the Hugging Face hub it is one commit. Elsewhere the
    manifest is written last; who fetches the bundle meanwhile may find files that do not fit it,
    and then gets an error.

    Parameters
    ----------
    bundle
        The bundle.
    to
        A folder, an address that fsspec knows (``s3://bucket/name``), or ``hf://user/name``.
    replace
        Take the place of what is there: a bundle, in a folder also a dataset. Not needed for the
        same bundle, nor on the hub for one of the same name: a repository keeps what was there.

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
        The place holds something else.
    """
    names = [*bundle.manifest.files, CARD, MANIFEST]
    if not is_url(to):
        if not _is_at(Path(to), bundle):
            restore_folder(Path(to))
            check_free(Path(to), "bundle", replace=replace, error=BundleError)
            copy_files(bundle.path, names, Path(to), Bundle.load)
        return to
    with remote_errors(to):
        place = open_place(to, "model")
        there = place.entries()
        _check_address(place, there, bundle, replace)
        others = [name for name in there if _is_part(name) and name not in names]
        made_by = f"made by costlib {bundle.manifest.costlib_version}"
        place.put(bundle.path, names, others, f"{bundle.name}, {made_by}")
    return to


def _is_at(folder: Path, bundle: Bundle) -> bool:
    try:
        return Bundle.load(folder).manifest == bundle.manifest
    except (BundleError, OSError):
        return False


def _check_address(place: Place, there: Collection[str], bundle: Bundle, replace: bool) -> None:
    """Refuse an address that holds something else than an older state of a bundle."""
    if "dataset.json" in there:
        raise BundleError(f"{place.url} holds a dataset; choose another address")
    if MANIFEST not in there or replace:
        return
    try:
        found = parse_manifest(place.read(MANIFEST), place.url)
    except BundleError:
        if place.keeps_history:
            return
        raise BundleError(f"{place.url} holds a bundle that cannot be read; {_REPLACE}") from None
    if not (found.name == bundle.name if place.keeps_history else found == bundle.manifest):
        raise BundleError(f"{place.url} holds another bundle, '{found.name}'; {_REPLACE}")


def fetch(url: str) -> Path:
    """Return the folder of a published bundle, fetched unless the cache has it.

    Raises
    ------
    HubError
        It cannot be reached and was never fetched.
    BundleError
        There is none, or it is damaged.
    StorageError
        The copy cannot be written.
    """
    copy = cache_folder("bundles", url)
    try:
        with remote_errors(url):
            _update(open_place(url, "model"), copy)
    except HubError as error:
        if not holds_bundle(copy):
            raise
        _log.warning("%s; the copy fetched before is used", error)
    note_address(copy, url)
    return copy


def _update(place: Place, copy: Path) -> None:
    """Fetch what differs from the copy, and let the whole take its place once it is checked."""
    try:
        content = place.read(MANIFEST)
    except FileNotFoundError:
        raise BundleError(nothing_at(place.url, "bundle", MANIFEST)) from None
    files = parse_manifest(content, place.url).files
    kept = {name for name, digest in files.items() if _is_file(copy / name, digest)}
    if len(kept) == len(files) and _is_file(copy / MANIFEST, hashlib.sha256(content).hexdigest()):
        return
    with replacing_folder(copy) as new:
        for name in kept:
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            link_file(copy / name, new / name)
        try:
            fetch_files(place, [name for name in files if name not in kept], new, new)
            with suppress(FileNotFoundError):
                fetch_files(place, [CARD], new, new)
        except FileNotFoundError as error:
            raise BundleError(f"{place.url} is incomplete: {first_line(error)}") from None
        (new / MANIFEST).write_bytes(content)
        try:
            Bundle.load(new)
        except BundleError as error:
            raise BundleError(str(error).replace(str(new), place.url)) from None


def _is_file(file: Path, digest: str) -> bool:
    return file.is_file() and sha256_of(file) == digest


def _is_part(name: str) -> bool:
    """Whether a file lies in one of a bundle's folders; others at its address are not ours."""
    parts = PurePosixPath(name).parts
    return len(parts) > 1 and parts[0] in PARTS
