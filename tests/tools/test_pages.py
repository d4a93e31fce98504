"""The committed pages of results are what the scripts write, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from costlib.report.svg import save_drawing
from tools.evidence.files import REPOSITORY
from tools.evidence.pages import ablation, pytorch
from tools.evidence.pages.page import Page
from tools.evidence.pages.written import PAGES, with_headlines, write_texts
from tools.evidence.provenance import provenance
from tools.evidence.store import Store
from tools.evidence.stores import GENERATE, SEARCH, TORCH

COMMITTED = REPOSITORY / "docs" / "results"
README = REPOSITORY / "README.md"


@pytest.fixture(autouse=True)
def committed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody has measured here and not packed yet does not count."""
    monkeypatch.setattr(Store, "_raw", lambda store: iter(()))


def test_pages_are_as_they_are_written(tmp_path: Path) -> None:
    write_texts(tmp_path)
    written = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert written == {file.name: file.read_text() for file in COMMITTED.glob("*.md")}


def test_the_readme_is_as_it_is_written() -> None:
    assert with_headlines(README.read_text()) == README.read_text()


def test_a_readme_without_a_place_for_results_is_refused() -> None:
    with pytest.raises(ValueError, match="0 blocks"):
        with_headlines("# costlib\n")


def test_what_stood_between_the_markers_is_replaced() -> None:
    readme = "# costlib\n<!-- results: begin -->\nan older table\n<!-- results: end -->\nThe end.\n"
    written = with_headlines(readme)
    assert "an older table" not in written
    assert written.endswith("<!-- results: end -->\nThe end.\n")


def test_pages_show_all_pictures_that_are_committed_and_no_others() -> None:
    shown = {name for page in PAGES for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", page.text())}
    assert shown == {name for page in PAGES for name in page.pictures()}
    assert shown == {file.name for file in COMMITTED.glob("*.svg")}


@pytest.mark.parametrize("page", [ablation.PAGE, pytorch.PAGE], ids=lambda page: page.name)
def test_a_picture_is_the_same_whenever_it_is_drawn(page: Page, tmp_path: Path) -> None:
    name, make = next(iter(page.pictures().items()))
    for copy in ("one", "two"):
        save_drawing(make(), tmp_path / copy / name)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_links_lead_somewhere() -> None:
    for file in (*COMMITTED.glob("*.md"), README):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read_text()):
            assert (file.parent / target).exists(), f"{file.name}: {target}"


def test_provenance_knows_the_machines_and_changes_that_it_names() -> None:
    known = provenance()
    runs = [run for measured in known.benchmarks.values() for run in measured.runs]
    assert {run.machine for run in runs} - {None} <= known.machines.keys()
    assert {change for run in runs for change in run.since} == known.changes.keys()
    assert all(first <= last for first, last in (run.measured for run in runs))


def test_provenance_has_a_run_for_each_machine_that_was_raced_on() -> None:
    found = {
        "search": {r.hardware for r in SEARCH.load() if r.kind in ("heavy", "network", "long")},
        "ablation": {r.hardware for r in SEARCH.load() if r.kind in ("ablation", "cold")},
        "generate": {race.hardware for race in GENERATE.load()},
        "torch": {network.hardware for network in TORCH.load()},
    }
    for benchmark, machines in found.items():
        runs = provenance().benchmarks[benchmark].runs
        assert machines == {run.machine for run in runs}, benchmark
