"""The committed pages of results are what the scripts write, and nothing else."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from costlib.report.svg import save_drawing
from tools.evidence.files import REPOSITORY, read_result
from tools.evidence.origins import unnamed
from tools.evidence.pages import __main__ as pages_command
from tools.evidence.pages import ablation, engines, measuring, vector_math, written
from tools.evidence.pages.page import Page
from tools.evidence.pages.written import DOCUMENTS, PAGES, mixed_tables, with_results, write_texts
from tools.evidence.provenance import HEADING, provenance
from tools.evidence.races import Race
from tools.evidence.store import Store
from tools.evidence.stores import GENERATE, SEARCH

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


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_as_they_are_written(name: str) -> None:
    document = (REPOSITORY / name).read_text()
    assert with_results(document, DOCUMENTS[name]()) == document


def test_a_document_without_a_place_for_results_is_refused() -> None:
    with pytest.raises(ValueError, match="0 blocks"):
        with_results("# costlib\n", "a table")


def test_what_stood_between_the_markers_is_replaced() -> None:
    readme = "# costlib\n<!-- results: begin -->\nan older table\n<!-- results: end -->\nThe end.\n"
    written = with_results(readme, "a newer table")
    assert "an older table" not in written
    assert "a newer table" in written
    assert written.endswith("<!-- results: end -->\nThe end.\n")


def test_pages_show_all_pictures_that_are_committed_and_no_others() -> None:
    shown = {name for page in PAGES for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", page.text())}
    assert shown == {name for page in PAGES for name in page.pictures()}
    assert shown == {file.name for file in COMMITTED.glob("*.svg")}


@pytest.mark.parametrize("page", [ablation.PAGE, engines.PAGE], ids=lambda page: page.name)
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


def of_races(store: Store[Race], kind: str) -> set[str | None]:
    return {race.hardware for race in store.load() if race.kind == kind}


def of_rows(name: str, rows: str, key: str) -> set[str]:
    return {row[key] for row in read_result(name)[rows]}


MACHINES: dict[tuple[str, str | None], Callable[[], set[str | None] | set[str]]] = {
    ("search", "whole networks"): lambda: of_races(SEARCH, "network"),
    ("search", "single tasks"): lambda: of_races(SEARCH, "heavy"),
    ("search", "long races"): lambda: of_races(SEARCH, "long"),
    ("ablation", "with a bundle"): lambda: of_races(SEARCH, "ablation"),
    ("ablation", "without a bundle"): lambda: of_races(SEARCH, "cold"),
    ("ablation", "diffusion"): lambda: of_races(SEARCH, "diffusion"),
    ("generate", None): lambda: {race.hardware for race in GENERATE.load()},
    ("engines", None): lambda: of_rows("engines", "networks", "hardware"),
    ("precision", None): lambda: of_rows("precision", "cases", "hardware"),
    ("layout_bound", None): lambda: {
        found["hardware"] for found in read_result("layout_bound")["networks"].values()
    },
    ("im2col", None): lambda: {read_result("im2col")["hardware"]},
    ("cache_state", None): lambda: of_rows("cache_state", "cases", "hardware"),
    ("preparation", None): lambda: of_rows("preparation", "cases", "hardware"),
    ("soak", None): lambda: of_rows("soak", "sessions", "hardware_id"),
    ("measure", None): lambda: {read_result("measure")["hardware_id"]},
    ("scale", None): lambda: {read_result("scale")["hardware"]},
    ("coverage", None): lambda: {read_result("coverage")["machine"]},
    ("model_speed", None): lambda: {read_result("model_speed")["scoring"]["hardware"]},
    ("cuda", None): lambda: {read_result("cuda")["hardware"]},
}


@pytest.mark.parametrize(("benchmark", "part"), MACHINES)
def test_provenance_has_a_run_for_each_machine_in_the_result_files(
    benchmark: str, part: str | None
) -> None:
    runs = provenance().benchmarks[benchmark].runs
    noted = {run.machine for run in runs if part in (None, run.part)}
    assert noted == MACHINES[benchmark, part]()


def test_no_committed_page_mixes_machines_or_commits_without_naming_them() -> None:
    assert mixed_tables() == []


@pytest.mark.parametrize("page", [vector_math.PAGE, measuring.PAGE], ids=lambda page: page.name)
def test_a_page_is_refused_once_another_commit_is_mixed_in(page: Page) -> None:
    known = provenance()
    (name, found), *_ = ((n, one) for n, one in known.benchmarks.items() if one.page == page.name)
    first = found.runs[0]
    runs = (first, first.model_copy(update={"commit": "0123456789"}))
    mixed = found.model_copy(update={"runs": runs})
    made_up = known.model_copy(update={"benchmarks": known.benchmarks | {name: mixed}})
    assert unnamed(page.text(), page.name, known) == []
    assert unnamed(page.text(), page.name, made_up) != []


def test_the_writer_refuses_such_a_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mixing = Page("search", "Search", lambda: ["| a |\n| --- |\n| 1 |"], ())
    monkeypatch.setattr(written, "PAGES", (mixing,))
    monkeypatch.setattr(sys, "argv", ["pages", "--out", str(tmp_path)])
    with pytest.raises(SystemExit, match="search: # Search: a table, and no word of where"):
        pages_command.main()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_come_first_then_words_then_tables(page: Page) -> None:
    for section in re.split(r"^(?=#+ )", page.text().partition(HEADING)[0], flags=re.MULTILINE):
        lines = section.splitlines()[1:]
        tables = [n for n, line in enumerate(lines) if line.startswith("|")]
        if tables:
            shown = [n for n, line in enumerate(lines) if line.startswith("![")]
            assert all(n < tables[0] for n in shown), section
            words = [line for line in lines[: tables[0]] if re.match(r"[\w`]", line)]
            assert words, section


def test_a_page_of_which_nothing_was_measured_says_so() -> None:
    page = Page("x", "Nothing", lambda: pytest.fail("it has nothing to show"), ("no such file",))
    assert page.text() == "# Nothing\n\nNothing of this has been measured yet.\n"
    assert page.pictures() == {}
