"""Write the pages of results, and what the README and the changelog show of them.

python -m tools.evidence.pages         # docs/results/ and the documents; no figure is typed by hand
python -m tools.evidence.pages --out FOLDER   # the pages alone, into a folder

A page is refused whose tables may mix machines or commits that they do not name.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.evidence.files import REPOSITORY
from tools.evidence.pages.written import (
    DOCUMENTS,
    mixed_tables,
    with_results,
    write_pictures,
    write_texts,
)


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="a folder for the pages; documents stay")
    out = parser.parse_args().out
    if mixed := mixed_tables():
        sys.exit("\n".join(mixed))
    folder = out or REPOSITORY / "docs" / "results"
    write_texts(folder)
    write_pictures(folder)
    if out is None:
        for name, block in DOCUMENTS.items():
            document = REPOSITORY / name
            document.write_text(with_results(document.read_text(), block()))


if __name__ == "__main__":
    main()
