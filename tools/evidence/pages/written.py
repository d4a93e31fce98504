"""All pages of results, as files, and the figures in the README and the changelog."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from costlib.files import write_file
from costlib.report.svg import save_drawing
from tools.evidence.origins import unnamed
from tools.evidence.pages import (
    ablation,
    budgets,
    convolutions,
    coverage,
    cuda,
    directions,
    engines,
    fuzz,
    generator,
    measuring,
    memory,
    peers,
    precision,
    preparation,
    ranking,
    scale,
    search,
    shapes,
    soak,
    surrogate,
    transfer,
    vector_math,
)
from tools.evidence.pages.headlines import headline_list, readme_block
from tools.evidence.pages.index import index
from tools.evidence.provenance import provenance

PAGES = tuple(
    module.PAGE
    for module in (
        search,
        peers,
        ablation,
        budgets,
        memory,
        surrogate,
        directions,
        engines,
        convolutions,
        preparation,
        precision,
        shapes,
        generator,
        ranking,
        transfer,
        measuring,
        vector_math,
        scale,
        coverage,
        fuzz,
        soak,
        cuda,
    )
)
DOCUMENTS: Mapping[str, Callable[[], str]] = {
    "README.md": readme_block,
    "CHANGELOG.md": headline_list,
}
"""What stands between the markers of documents that are written by hand otherwise."""

_BLOCK = re.compile(r"(<!-- results: begin -->\n).*?(<!-- results: end -->)", re.DOTALL)


def write_texts(folder: Path) -> None:
    """Write the text of each page, and the index."""
    for page in (index(PAGES), *PAGES):
        write_file(folder / f"{page.name}.md", page.text().encode())


def mixed_tables() -> list[str]:
    """Return the tables that may mix machines or commits which they do not name."""
    return [
        f"{page.name}: {problem}"
        for page in PAGES
        for problem in unnamed(page.text(), page.name, provenance())
    ]


def write_pictures(folder: Path) -> None:
    """Draw the pictures of each page; those that none shows any more are removed."""
    shown = {name: make for page in PAGES for name, make in page.pictures().items()}
    for name, make in shown.items():
        save_drawing(make(), folder / name)
    for file in folder.glob("*.svg"):
        if file.name not in shown:
            file.unlink()


def with_results(document: str, block: str) -> str:
    """Return a document with this block between its markers."""
    written, blocks = _BLOCK.subn(lambda found: f"{found[1]}\n{block}\n\n{found[2]}", document)
    if blocks != 1:
        raise ValueError(f"the document has {blocks} blocks for results, not one")
    return written
