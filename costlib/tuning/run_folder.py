"""The folder of a tuning run: whose it is, and the names in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from costlib.errors import InputError
from costlib.files import storage_errors

RUN = "run.json"


def claim(out: Path, *, resume: bool, **settings: Any) -> None:
    """Note what a folder is a run of.

    Parameters
    ----------
    out
        The folder; made if it does not exist.
    resume
        Whether it may be a run already; its settings must be these.
    **settings
        What makes a run this run, as JSON's types.

    Raises
    ------
    InputError
        It is a run and ``resume`` is not given, or it is another run.
    """
    file = out / RUN
    with storage_errors(out):
        out.mkdir(parents=True, exist_ok=True)
        text = file.read_text() if file.exists() else None
        if text is None:
            file.write_text(json.dumps(settings, indent=2) + "\n")
            return
    if not resume:
        raise InputError(f"{out} holds a run; --resume goes on with it, or choose another folder")
    try:
        noted = json.loads(text)
    except ValueError:
        noted = None
    if noted != settings:
        raise InputError(
            f"{out} holds a run of {text.strip()}, not of {json.dumps(settings)}; "
            "choose another folder"
        )


def library_name(network: str, count: int) -> str:
    """Return the file name of a compiled network; a run's only one is ``network.so``."""
    safe = "".join(c if c.isalnum() or c in "._@-" else "_" for c in network)
    return "network.so" if count == 1 else f"{safe}.so"
