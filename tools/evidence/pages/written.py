"""All pages of results, as files: text, pictures, and the table in the README."""

from __future__ import annotations

import re
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
    pytorch,
    ranking,
    scale,
    search,
    shapes,
    soak,
    surrogate,
    transfer,
    vector_math,
)
from tools.evidence.pages.headlines import block, index
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
        pytorch,
        engines,
        convolutions,
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


def with_headlines(readme: str) -> str:
    """Return a README whose block between the markers is the table of headline results."""
    written, blocks = _BLOCK.subn(lambda found: f"{found[1]}\n{block()}\n\n{found[2]}", readme)
    if blocks != 1:
        raise ValueError(f"the README has {blocks} blocks for results, not one")
    return written
