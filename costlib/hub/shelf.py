"""The bundles that come with costlib, by name."""

from __future__ import annotations

import fnmatch
from pathlib import Path

from costlib.hub.manifest import MANIFEST

_PACKAGE = Path(__file__).resolve().parent.parent

SHELVES = (_PACKAGE / "pretrained", _PACKAGE.parent / "pretrained")
"""Where shipped bundles lie: inside an installed package, or beside it in a checkout."""


def list_bundles(pattern: str = "*") -> dict[str, Path]:
    """Return the shipped bundles whose name matches a shell pattern, by name."""
    found = {
        manifest.parent.name: manifest.parent
        for shelf in reversed(SHELVES)
        for manifest in sorted(shelf.glob(f"*/{MANIFEST}"))
    }
    return {name: found[name] for name in sorted(found) if fnmatch.fnmatch(name, pattern)}
