from __future__ import annotations

import functools
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from costlib.errors import StorageError
from costlib.report.page import (
    Fold,
    Page,
    Picture,
    Section,
    Table,
    render,
    save_page,
    save_pictures,
)


def figure(title: str = "a line") -> Figure:
    drawn = Figure(figsize=(3, 2))
    axes = drawn.subplots()
    axes.plot([1, 2, 3])
    axes.set_title(title, parse_math=False)
    return drawn


def page(text: str = "plain") -> Page:
    parts = [
        Table((text, ">number"), [[text, 1]]),
        Fold(text, text),
        Picture("one", text, figure()),
    ]
    return Page(text, text, [(text, text)], [Section(text, text, parts)])


class Seen(HTMLParser):
    """Notes what a browser would: elements, their attributes, and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href") and value is not None:
                self.addresses.append(value)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@functools.cache
def plain_tags() -> list[str]:
    return Seen(render(page())).tags


def test_a_page_needs_nothing_else() -> None:
    seen = Seen(render(page()))
    assert seen.tags.count("svg") == 1 and "img" not in seen.tags
    assert all(address.startswith("#") for address in seen.addresses)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1))
@settings(max_examples=12, deadline=None)
def test_whatever_it_is_told_is_text(text: str) -> None:
    hostile = f"<script>alert(1)</script>{text}</pre><img src=x>"
    seen = Seen(render(page(hostile)))
    assert seen.tags == plain_tags()
    assert hostile in "".join(seen.texts)


def test_pictures_take_the_colour_of_the_text() -> None:
    html = render(page())
    assert "currentColor" in html and "#000000" not in html


def test_two_pictures_do_not_share_marks() -> None:
    pictures = [Picture("one", "one", figure()), Picture("two", "two", figure())]
    html = render(Page("t", "t", sections=[Section("s", parts=pictures)]))
    clips = [part.split('"')[0] for part in html.split('<clipPath id="')[1:]]
    assert len(clips) == len(set(clips)) > 1


def test_pictures_are_saved_for_papers(tmp_path: Path) -> None:
    files = save_pictures(page(), tmp_path / "figures")
    assert [file.name for file in files] == ["one.png", "one.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert ET.parse(files[1]).getroot().tag.endswith("svg")


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="cannot write"):
        save_page(page(), tmp_path / "file" / "page.html")
    save_page(page(), tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").is_file()
