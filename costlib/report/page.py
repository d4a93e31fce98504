"""A report as one HTML page that opens anywhere: styles, pictures and texts are all inside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from costlib.files import write_file
from costlib.report.figures import save_figure
from costlib.report.svg import drawing


@dataclass(frozen=True)
class Link:
    """A text that leads to a section of the same page, or to another page.

    Attributes
    ----------
    text
        What is shown.
    address
        ``"#anchor"``, or a path relative to the page.
    """

    text: str
    address: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Place:
    """A text that a :class:`Link` leads to.

    Attributes
    ----------
    text
        What is shown.
    anchor
        What the link calls it.
    """

    text: str
    anchor: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Bar:
    """A share as a bar with its text.

    Attributes
    ----------
    share
        Of the whole width, from 0 to 1.
    text
        What stands beside it.
    """

    share: float
    text: str

    def __str__(self) -> str:
        return self.text


Sentence = Sequence["str | Link"]
"""Texts and links, to be read one after the other."""


@dataclass(frozen=True)
class Table:
    """Rows under column titles; a title that starts with ``>`` is of numbers.

    Cells may be a :class:`Link`, a :class:`Place` or a :class:`Bar`.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Picture:
    """A figure.

    Attributes
    ----------
    name
        Its file's, where it is saved apart from the page; no other of the page has it.
    title
        What it shows, for those who cannot see it.
    """

    name: str
    title: str
    figure: Figure


@dataclass(frozen=True)
class Choice:
    """Pictures of which one is shown at a time, and the labels to choose it by."""

    options: Sequence[tuple[str, Picture]]

    @property
    def name(self) -> str:
        """What no other choice of the page is called."""
        return self.options[0][1].name


@dataclass(frozen=True)
class Gallery:
    """Pictures beside one another where there is room, below one another where there is none."""

    pictures: Sequence[Picture | Choice]


@dataclass(frozen=True)
class Fold:
    """A long text or table that is shown when its title is clicked on."""

    title: str
    content: str | Table


Part = Table | Picture | Gallery | Choice | Fold


@dataclass(frozen=True)
class Section:
    """A heading, a sentence or two, and what belongs there, in order.

    Attributes
    ----------
    anchor
        What a :class:`Link` calls it.
    level
        Of the heading; 3 belongs to the section before it.
    """

    title: str
    text: str = ""
    parts: Sequence[Part] = ()
    anchor: str = ""
    level: int = 2


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
    verdict
        What a reader wants to know first.
    refresh_s
        Seconds after which a browser asks for it again; 0 for never.
    home
        The page that it belongs to, if there is one.
    """

    title: str
    text: str
    facts: Sequence[tuple[str, str]] = ()
    sections: Sequence[Section] = ()
    verdict: Sequence[Sentence] = ()
    refresh_s: int = 0
    home: Link | None = None

    def _repr_html_(self) -> str:
        """Show the page in a notebook, in a frame of its own."""
        text = render(self).replace("&", "&amp;").replace('"', "&quot;")
        return f'<iframe sandbox srcdoc="{text}" style="width: 100%; height: 40rem"></iframe>'

    @property
    def pictures(self) -> list[Picture]:
        """All pictures, in order."""
        parts = [part for section in self.sections for part in section.parts]
        return [picture for part in parts for picture in _pictures(part)]


def _pictures(part: Part) -> Iterator[Picture]:
    if isinstance(part, Picture):
        yield part
    elif isinstance(part, Gallery):
        for one in part.pictures:
            yield from _pictures(one)
    elif isinstance(part, Choice):
        yield from (picture for _, picture in part.options)


def save_page(page: Page, path: Path) -> None:
    """Write a page.

    Raises
    ------
    StorageError
        It cannot be written.
    """
    write_file(path, render(page).encode(errors="replace"))


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
    environment.filters["drawing"] = lambda one: Markup(drawing(one.figure, one.name))
    environment.filters["kind"] = lambda part: type(part).__name__.lower()
    return environment.get_template("page.html").render(page=page)
