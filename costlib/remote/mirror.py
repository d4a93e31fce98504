"""A copy of the folder at an address, brought up to date while others may read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from costlib.errors import HubError
from costlib.files import write_json
from costlib.remote.place import Entry, Place, fetch_files

_LISTINGS = 8
"""After so many, a place changes too fast."""

_MARKS = "marks.json"

Files = Mapping[str, Entry]


def mirror(place: Place, folder: Path, state: Path, choose: Callable[[Files], Files]) -> Files:
    """Fetch what is new or has changed at an address; what is gone there is left in place.

    A place without commits may change while it is listed, so a listing counts once it was found
    twice, with nothing missing of it.

    Parameters
    ----------
    place
        Where to look.
    folder
        The copy.
    state
        A folder beside it for what is known of the copy's files, and for unfinished ones. Nobody
        else may use it meanwhile.
    choose
        From what is there to what of it is wanted, in the order to fetch it. Names must not lead
        out of the folder.

    Returns
    -------
    dict
        What there is now at the place, and in the copy, of what is wanted.

    Raises
    ------
    HubError
        The place changes too fast.
    StorageError
        The copy cannot be written.
    """
    before: Files | None = None
    for _ in range(_LISTINGS):
        there = choose(place.entries())
        if there == before:
            return there
        try:
            _fetch_changed(place, there, folder, state)
        except FileNotFoundError:  # Removed since it was listed, as a compaction does.
            continue
        before = there
    raise HubError(f"{place.url} changes while it is fetched; try again in a while")


def _fetch_changed(place: Place, there: Files, folder: Path, state: Path) -> None:
    known = _read_marks(state / _MARKS)
    absent = {name for name in there if not (folder / name).is_file()}
    changed = {
        name
        for name in there.keys() - absent
        if there[name].mark is None
        or known.get(name) != there[name].mark
        or (folder / name).stat().st_size != there[name].size
    }
    if absent or changed:
        marks = {name: entry.mark for name, entry in there.items()}
        # In this order, a kill leaves no file with the mark of another content.
        write_json(state / _MARKS, {n: mark for n, mark in marks.items() if n not in changed})
        wanted = [name for name in there if name in absent or name in changed]
        fetch_files(place, wanted, folder, state)
        write_json(state / _MARKS, marks)


def _read_marks(file: Path) -> dict[str, str | None]:
    try:
        marks = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return marks if isinstance(marks, dict) else {}
