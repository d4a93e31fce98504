"""Bundles loaded by name, from a folder or from an address."""

from __future__ import annotations

from pathlib import Path

from costlib.errors import BundleError, UnknownNameError
from costlib.files import restore_folder
from costlib.hub.bundle import Bundle
from costlib.hub.manifest import MANIFEST
from costlib.hub.remote import fetch
from costlib.hub.shelf import list_bundles
from costlib.remote.address import is_url

DEFAULT_BUNDLE = "cpu-gbdt"


def load_pretrained(name_or_path: str | Path = DEFAULT_BUNDLE) -> Bundle:
    """Load a bundle.

    Parameters
    ----------
    name_or_path
        The name of a shipped bundle, a bundle's folder, or the address of a published one
        (``hf://user/name``, ``s3://bucket/name``), which is fetched once.

    Raises
    ------
    UnknownNameError
        No bundle is called so, and no such folder exists.
    BundleError
        There is one, but it is damaged or does not fit this costlib.
    HubError
        It is elsewhere, cannot be reached, and was never fetched.
    """
    if is_url(str(name_or_path)):
        return Bundle.load(fetch(str(name_or_path)))
    shipped = list_bundles()
    if str(name_or_path) in shipped:
        return Bundle.load(shipped[str(name_or_path)])
    path = Path(name_or_path)
    restore_folder(path)
    if path.is_dir():
        return Bundle.load(path)
    if path.exists():
        raise BundleError(f"{path} is a file; a bundle is a folder with a {MANIFEST}")
    raise UnknownNameError("bundle", str(name_or_path), shipped)
