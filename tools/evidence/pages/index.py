"""The page that leads to the others, and says what was measured where."""

from __future__ import annotations

from collections.abc import Iterable

from tools.evidence.markdown import table
from tools.evidence.pages.headlines import headline_table
from tools.evidence.pages.page import Page
from tools.evidence.provenance import Run, machine, provenance, since


def index(pages: Iterable[Page]) -> Page:
    """Return the page that leads to the others."""
    titles = {page.name: page.title for page in pages}

    def parts() -> list[str]:
        known = provenance()
        runs = [(found.page, run) for found in known.benchmarks.values() for run in found.runs]
        changes = [f"- *{name}*: {words}" for name, words in known.changes.items()]
        return [
            headline_table(),
            "The processors are two cores of virtual machines, unless it is said otherwise, and "
            "shared with others; yours will differ. `make results` writes these pages from the "
            "files in `tools/results` and from the manifests of the shipped bundles. No figure on "
            "them is typed by hand.",
            "\n".join(f"- [{title}]({name}.md)" for name, title in titles.items()),
            "## What was measured where",
            "Measurements are not repeated with each change of costlib. The last column names what "
            "has changed since.",
            table(
                ["page", "what", "machine", "commit", "when", "changed in costlib since"],
                [[f"[{page}]({page}.md)", *_run(run)] for page, run in runs],
            ),
            *(["What changed, the oldest first:", "\n".join(changes)] if changes else []),
            "## Machines",
            table(
                ["name", "hardware id"],
                [[name, f"`{hardware}`"] for hardware, name in known.machines.items()],
            ),
        ]

    return Page("index", "Results", parts, ())


def _run(run: Run) -> list[str]:
    commit = f"`{run.commit}`" if run.commit else "not noted"
    return [run.part, machine(run.machine), commit, run.when, since(run)]
