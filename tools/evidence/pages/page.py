"""A page of results: text and pictures, made of result files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Pictures = Mapping[str, "Callable[[], Figure]"]


class Page(NamedTuple):
    """A page.

    Attributes
    ----------
    name
        Of the file, without its suffix.
    title
        Its heading.
    parts
        Makes its paragraphs, tables and pictures' places.
    pictures
        Returns what makes each picture, by the names of their files.
    """

    name: str
    title: str
    parts: Callable[[], list[str]]
    pictures: Callable[[], Pictures] = dict

    def text(self) -> str:
        """Return the page in Markdown."""
        return "\n\n".join([f"# {self.title}", *self.parts()]) + "\n"
