"""Pretrained bundles: what a tuning run loads.

- :mod:`~costlib.hub.bundle`: the files of a bundle, saved and loaded with their hashes checked;
- :mod:`~costlib.hub.manifest`: what ``bundle.json`` says of them;
- :mod:`~costlib.hub.priors`: the best programs known for look-alike tasks;
- :mod:`~costlib.hub.catalog`: bundles by name;
- :mod:`~costlib.hub.remote`: bundles published elsewhere, and fetched.
"""

from __future__ import annotations

from costlib.hub.bundle import Bundle, save_bundle
from costlib.hub.catalog import list_bundles, load_pretrained

__all__ = ["Bundle", "list_bundles", "load_pretrained", "save_bundle"]
