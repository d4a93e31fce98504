"""Bundles that others have published, read by their manifests alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from fnmatch import fnmatch

from costlib.errors import BundleError, HubError
from costlib.frozen import Frozen
from costlib.hub.manifest import MANIFEST, Manifest, parse_manifest
from costlib.remote.address import HF, remote_errors
from costlib.remote.place import Place, addresses_below, open_place

_log = logging.getLogger(__name__)


class Published(Frozen):
    """A bundle at an address.

    Attributes
    ----------
    address
        What :func:`costlib.hub.load_pretrained` takes.
    revision
        The commit that was looked at, which ``address@revision`` pins; ``None`` where nothing keeps
        a history.
    manifest
        What the bundle says of itself.
    """

    address: str
    revision: str | None
    manifest: Manifest


def list_published(where: str = HF, pattern: str = "*") -> Iterator[Published]:
    """Yield the bundles at an address, by address.

    Parameters
    ----------
    where
        ``hf://`` for all bundles of costlib on the Hugging Face hub, ``hf://user`` for those of
        one user there; or a folder of bundles that fsspec knows, ``s3://bucket/bundles``.
    pattern
        A shell pattern of the end of their addresses: ``me/cpu-*``, or ``cpu-*`` for the name.

    Raises
    ------
    HubError
        The place cannot be reached.
    """
    with remote_errors(where):
        addresses = sorted(addresses_below(where, "costlib"))
    for address in addresses:
        if not (fnmatch(address, f"*/{pattern}") or fnmatch(address, pattern)):
            continue
        place = open_place(address, "model")
        try:
            with remote_errors(address):
                manifest = _manifest(place)
        except (BundleError, HubError) as error:
            _log.warning("%s", error)
            continue
        if manifest is not None:
            yield Published(address=address, revision=place.revision, manifest=manifest)


def _manifest(place: Place) -> Manifest | None:
    """Return what lies there says of itself; ``None`` if it is no bundle."""
    try:
        content = place.read(MANIFEST)
    except FileNotFoundError:
        return None
    return parse_manifest(content, place.url)
