"""A report as one HTML page that opens anywhere: styles, pictures and texts are all inside it."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from costlib.files import write_file
from costlib.report.figures import save_figure

_BLACK = "#000000"
"""What matplotlib draws text and axes in; in a page that is the colour of the page's text."""


@dataclass(frozen=True)
class Table:
    """Rows under column titles; a title that starts with ``>`` is of numbers."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes
    ----------
    name
        Its file's, where it is saved apart from the page.
    title
        What it shows, for those who cannot see it.
    """

    name: str
    title: str
    figure: Figure


@dataclass(frozen=True)
class Fold:
    """A long text that is shown when its title is clicked on."""

    title: str
    text: str


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and what belongs there, in order."""

    title: str
    text: str = ""
    parts: Sequence[Table | Picture | Fold] = ()


@dataclass(frozen=True)
class Page:
    """A report.

    Attributes
    ----------
    title, text
        What it is about.
    facts
        What is known at a glance: names and values.
    sections
        The rest.
    """

    title: str
    text: str
    facts: Sequence[tuple[str, str]] = ()
    sections: Sequence[Section] = ()

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, in order."""
        parts = [part for section in self.sections for part in section.parts]
        return [part for part in parts if isinstance(part, Picture)]


def save_page(page: Page, path: Path) -> None:
    """Write a page.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    write_file(path, render(page).encode())


def save_pictures(page: Page, folder: Path) -> list[Path]:
    """Write a page's pictures as PNG and as SVG, for papers; return the files."""
    files = []
    for picture in page.pictures:
        for ending in ("png", "svg"):
            files.append(folder / f"{picture.name}.{ending}")
            save_figure(picture.figure, files[-1], dpi=200)
    return files


def render(page: Page) -> str:
    """Return a page as HTML; whatever it is told is shown as text, never taken for HTML."""
    environment = Environment(
        loader=PackageLoader("costlib.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["drawing"] = _drawing
    environment.filters["kind"] = lambda part: type(part).__name__.lower()
    return environment.get_template("page.html").render(page=page)


def _drawing(picture: Picture) -> str:
    """Return a figure as SVG that takes its page's width and colour of text."""
    text = io.StringIO()
    # Marks are shared by the figures of a page; another salt for each keeps their names apart.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": picture.name}):
        picture.figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawing = text.getvalue()
    drawing = drawing[drawing.index("<svg") :].replace(_BLACK, "currentColor")
    size = re.compile(r' width="([^"]*)" height="[^"]*"')
    return Markup(size.sub(r' style="max-width: \1"', drawing, count=1))
