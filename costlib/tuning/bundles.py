"""Which bundle a run starts from: one that has seen hardware like its own."""

from __future__ import annotations

import logging
from pathlib import Path

from costlib.hardware import Hardware
from costlib.hub import Bundle, load_pretrained
from costlib.hub.catalog import DEFAULT_BUNDLE
from costlib.hub.manifest import read_manifest
from costlib.hub.shelf import list_bundles

COLD = "none"
"""The name of no bundle: a run that starts without models and priors."""

_log = logging.getLogger(__name__)


def bundle_for(bundle: Bundle | str | Path | None, hardware: Hardware) -> Bundle | None:
    """Return the bundle of a run on some hardware; ``None`` for a run without.

    Parameters
    ----------
    bundle
        A bundle, its name or its folder, or ``"none"``; if not given, the first of those shipped
        that has seen hardware of this family, the default one before others.

    Raises
    ------
    InputError
        It has seen nothing of this kind, as one of CPUs on a GPU.
    """
    if bundle == COLD:
        return None
    if bundle is None and (bundle := _shipped(hardware)) is None:
        return None
    loaded = bundle if isinstance(bundle, Bundle) else load_pretrained(bundle)
    loaded.check_kind(hardware)
    if unknown := loaded.unknown(hardware):
        start = "" if loaded.name == DEFAULT_BUNDLE else f"--pretrained {loaded.path} "
        advice = f"; `costlib adapt {start}--out MINE` teaches it this machine"
        _log.warning("%s%s", unknown, "" if hardware.is_simulated else advice)
    return loaded


def _shipped(hardware: Hardware) -> str | None:
    """Name the shipped bundle for some hardware; say so if there is none."""
    seen = {name: read_manifest(path).families for name, path in list_bundles().items()}
    names = sorted(seen, key=lambda name: (name != DEFAULT_BUNDLE, name))
    for name in names:
        if hardware.family in seen[name]:
            return name
    known = ", ".join(sorted({family for families in seen.values() for family in families}))
    _log.warning(
        "the shipped models have seen no %s, only %s: the search starts without any",
        hardware.family,
        known or "nothing",
    )
    return None
