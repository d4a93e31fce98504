"""What there is under a folder, and the page of each thing; nothing outside of it is reached."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from costlib.errors import CostlibError, InputError
from costlib.report import is_dataset, report
from costlib.report.found_run import is_run
from costlib.report.page import Link, Page, Section, Table, render
from costlib.report.units import counted
from costlib.tuning.result import RESULT

Kind = Literal["run", "dataset", "bundle"]

_REFRESH_S = 5
"""Seconds after which a browser asks again for what may have grown."""

_MOST_CACHED = 32
"""Pages that are kept while what they show does not change."""


@dataclass(frozen=True)
class Entry:
    """A run, a dataset or a bundle.

    Attributes
    ----------
    kind
        Which of them.
    name
        Its path relative to the folder that is shown.
    folder
        Where it is.
    """

    kind: Kind
    name: str
    folder: Path

    @property
    def is_finished(self) -> bool:
        """Whether it is known to grow no more."""
        return self.kind == "bundle" or (self.kind == "run" and (self.folder / RESULT).exists())


class Shelf:
    """The runs, datasets and bundles under a folder, found anew whenever somebody asks.

    Parameters
    ----------
    root
        The folder.
    base
        What addresses of pages begin with.

    Raises
    ------
    InputError
        There is no such folder.
    """

    def __init__(self, root: Path, base: str = "") -> None:
        if not root.is_dir():
            raise InputError(f"{root} is no folder; name one that holds runs, datasets or bundles")
        self._root = root.resolve()
        self._base = base
        self._pages: dict[str, tuple[object, str]] = {}
        self._lock = threading.Lock()

    def entries(self) -> Iterator[Entry]:
        """Yield what there is, in the order of names."""
        for here, folders, _ in os.walk(self._root):
            folder = Path(here)
            kind = _kind(folder)
            if kind is None:
                visible = (name for name in folders if not name.startswith("."))
                folders[:] = sorted(name for name in visible if not (folder / name).is_symlink())
                continue
            folders.clear()
            yield Entry(kind, folder.relative_to(self._root).as_posix(), folder)

    def find(self, name: str) -> Entry | None:
        """Return what is called so; ``None`` if there is no such thing under the folder."""
        try:
            folder = (self._root / name).resolve()
        except (OSError, ValueError):
            return None
        if not folder.is_relative_to(self._root):
            return None
        kind = _kind(folder)
        return (
            None if kind is None else Entry(kind, folder.relative_to(self._root).as_posix(), folder)
        )

    def index(self) -> str:
        """Return the page that lists all, as HTML."""
        entries = list(self.entries())
        sections = []
        for kind in ("run", "dataset", "bundle"):
            own = [entry for entry in entries if entry.kind == kind]
            if own:
                rows = [[self._link(entry), _state(entry)] for entry in own]
                sections.append(
                    Section(f"{kind.capitalize()}s", "", [Table((kind, "state"), rows)])
                )
        page = Page(
            self._root.name,
            f"{counted(len(entries), 'run, dataset or bundle')} under {self._root}."
            if len(entries) == 1
            else f"{len(entries):,} runs, datasets and bundles under {self._root}.",
            sections=sections,
            refresh_s=_REFRESH_S,
        )
        return render(page)

    def page(self, entry: Entry) -> str:
        """Return the page of an entry as HTML; what is damaged has a page that says so."""
        state = _fingerprint(entry.folder)
        with self._lock:
            cached = self._pages.get(entry.name)
            if cached is not None and cached[0] == state:
                return cached[1]
            try:
                page = report(str(entry.folder))
            except CostlibError as error:
                page = Page(f"{entry.kind} {entry.name}", f"It cannot be shown: {error}")
            refresh_s = 0 if entry.is_finished else _REFRESH_S
            home = Link(self._root.name, f"{self._base}/")
            html = render(replace(page, refresh_s=refresh_s, home=home))
            while len(self._pages) >= _MOST_CACHED:
                self._pages.pop(next(iter(self._pages)))
            self._pages[entry.name] = (state, html)
            return html

    def _link(self, entry: Entry) -> Link:
        return Link(entry.name, f"{self._base}/page/{quote(entry.name)}")


def _kind(folder: Path) -> Kind | None:
    if is_dataset(folder):
        return "dataset"
    if (folder / "bundle.json").is_file():
        return "bundle"
    return "run" if is_run(folder) else None


def _state(entry: Entry) -> str:
    if entry.kind == "run":
        return "finished" if entry.is_finished else "at work, or stopped"
    return ""


def _fingerprint(folder: Path) -> list[tuple[str, int]]:
    """What changes when something in a folder does."""
    found = []
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(here, name)
            try:
                found.append((str(path), path.stat().st_mtime_ns))
            except OSError:  # It was replaced or removed meanwhile.
                continue
    return sorted(found)
