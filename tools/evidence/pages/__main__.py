"""Write the pages of results and the README's table of them.

python -m tools.evidence.pages         # docs/results/ and README.md; no figure is typed by hand
"""

from __future__ import annotations

from tools.evidence.files import REPOSITORY
from tools.evidence.pages.written import with_headlines, write_pictures, write_texts


def main() -> None:
    """Write everything."""
    folder, readme = REPOSITORY / "docs" / "results", REPOSITORY / "README.md"
    write_texts(folder)
    write_pictures(folder)
    readme.write_text(with_headlines(readme.read_text()))


if __name__ == "__main__":
    main()
