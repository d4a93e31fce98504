"""README.md and the site: complete, whole, and built without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

import costlib

ROOT = Path(__file__).parents[2]
TEXTS = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
ELSEWHERE = re.compile(r"[a-z]+:")
CODE = re.compile(r"^```.*?^```", re.M | re.S)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_readme_has_a_place_for_results() -> None:
    begin, end = "<!-- results: begin -->", "<!-- results: end -->"
    assert (ROOT / "README.md").read_text().count(begin) == 1
    assert begin in (ROOT / "README.md").read_text().partition(end)[0]


@pytest.mark.parametrize("name", costlib.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    text = "\n".join(page.read_text() for page in pages)
    wanted = f"`costlib.{name}`" if name.startswith("__") else f"::: costlib.{name}\n"
    assert wanted in text


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: str(text.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(text: Path) -> None:
    links = LINK.findall(CODE.sub("", text.read_text()))
    targets = [link for link in links if not ELSEWHERE.match(link)]
    assert [target for target in targets if not (text.parent / target).exists()] == []


class Fetched(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        name = "href" if tag == "link" and values.get("rel") != "canonical" else "src"
        self.addresses.append(values.get(name) or "")


def fetched_by(page: Path) -> Iterator[str]:
    parser = Fetched()
    parser.feed(page.read_text())
    yield from parser.addresses


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_is_built_strictly(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")}
    assert {page.with_suffix(".html") for page in pages} <= {
        page.relative_to(site) for page in site.rglob("*.html")
    }


def test_a_page_fetches_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = [one for one in fetched_by(page) if re.match(r"(https?:)?//", one)]
        assert found == [], page


def test_roles_of_sphinx_became_links(site: Path) -> None:
    reference = (site / "reference" / "tuning.html").read_text()
    assert not re.search(r":(class|func|meth|mod|attr):", reference)
    assert 'href="workloads.html#costlib.load_network"' in reference


def test_settings_are_shown_with_their_defaults(site: Path) -> None:
    reference = (site / "reference" / "search.html").read_text()
    begin = reference.index('id="costlib.EvolutionConfig"')
    shown = re.sub(r"<[^>]*>", " ", reference[begin:])
    defaults = costlib.EvolutionConfig()
    for name in ("population", "generations", "survivors", "early_survivors", "looks"):
        value = getattr(defaults, name)
        assert re.search(rf"{name}\s*:\s*int\s*=\s*{value}\b", shown), name
