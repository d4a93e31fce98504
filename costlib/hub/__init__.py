"""Pretrained bundles: what a tuning run loads.

- :mod:`~costlib.hub.bundle`: the files of a bundle, saved and loaded with their hashes checked;
- :mod:`~costlib.hub.manifest`: what ``bundle.json`` says of them;
- :mod:`~costlib.hub.priors`: the best programs known for look-alike tasks;
- :mod:`~costlib.hub.shelf`: those that come with costlib;
- :mod:`~costlib.hub.catalog`: any of them, loaded;
- :mod:`~costlib.hub.remote`: bundles published elsewhere, and fetched.

Manifests are read without what loads models, so names are looked up here when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costlib.hub.bundle import Bundle as Bundle
    from costlib.hub.bundle import save_bundle as save_bundle
    from costlib.hub.catalog import load_pretrained as load_pretrained
    from costlib.hub.shelf import list_bundles as list_bundles

_EXPORTS = {
    "Bundle": "costlib.hub.bundle",
    "list_bundles": "costlib.hub.shelf",
    "load_pretrained": "costlib.hub.catalog",
    "save_bundle": "costlib.hub.bundle",
}

__all__ = sorted(_EXPORTS)


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_EXPORTS[name]), name)
