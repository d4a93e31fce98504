"""A page of results: text and pictures, made of result files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tools.evidence.files import read_result

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
    needs
        Result files without which it has nothing to show.
    drawn
        Returns what makes each picture, by the names of their files.
    """

    name: str
    title: str
    parts: Callable[[], list[str]]
    needs: tuple[str, ...]
    drawn: Callable[[], Pictures] = dict

    @property
    def is_measured(self) -> bool:
        """Whether there is something to show."""
        return all(read_result(name) for name in self.needs)

    def pictures(self) -> Pictures:
        """Return what makes each picture, by the names of their files."""
        return self.drawn() if self.is_measured else {}

    def text(self) -> str:
        """Return the page in Markdown."""
        parts = self.parts() if self.is_measured else ["Nothing of this has been measured yet."]
        return "\n\n".join([f"# {self.title}", *parts]) + "\n"
