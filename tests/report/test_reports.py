from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from costlib.cli.app import run as run_command
from costlib.errors import CostlibError, InputError, UnknownNameError
from costlib.metaschedule import Builder, Runner
from costlib.report import report
from costlib.report.page import Fold, Page, Table, render, save_page
from costlib.tuning.tune import tune
from costlib.tvm_compat import ms
from costlib.workloads import extract_tasks

SOURCE = "matmul 64 64 64"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "run"
    tune(SOURCE, out=folder, trials=6)
    return folder


def tables(page: Page) -> dict[str, list[Table]]:
    return {s.title: [p for p in s.parts if isinstance(p, Table)] for s in page.sections}


def test_a_run(run: Path) -> None:
    page = report(str(run))
    assert SOURCE in page.title and ("trials", "6") in page.facts
    (origins,) = tables(page)["What each part of the search gave"]
    assert sum(int(row[1]) for row in origins.rows) == 6
    assert sum(int(row[4]) for row in origins.rows) == 1, "one task has one best program"
    (predictions,) = tables(page)["Predicted against measured"]
    assert predictions.rows[0][1] == 6
    steps, program = (part for part in page.sections[-1].parts if isinstance(part, Fold))
    assert "sample_perfect_tile" in steps.text
    assert "T.parallel" in program.text or "T.vectorized" in program.text
    assert {picture.name for picture in page.pictures} == {
        "curve",
        "spending",
        "tasks",
        "predictions",
    }


def test_a_run_beside_stock(run: Path, tmp_path: Path) -> None:
    """MetaSchedule's own database, as its search leaves it behind."""
    (task,) = extract_tasks(SOURCE)
    work = tmp_path / "stock"
    builder = Builder()
    with builder.measurer:
        ms.tune_tir(
            mod=task.mod,
            target=task.tvm_target(),
            work_dir=str(work),
            max_trials_global=8,
            num_trials_per_iter=4,
            num_tuning_cores=1,
            builder=builder,
            runner=Runner(builder),
            cost_model="random",
            strategy=ms.search_strategy.EvolutionarySearch(population_size=8),
        )
    page = report(str(run), work)
    ((row,),) = [table.rows for table in tables(page)["Beside stock"]]
    assert row[0] == task.name
    assert (row[1], row[3]) == ("6", "8")
    assert row[5] == "not reached" or 1 <= int(row[5]) <= 6
    assert "against" in {picture.name for picture in page.pictures}


def test_a_run_beside_itself(run: Path) -> None:
    (table,) = tables(report(str(run), run))["Beside run"]
    (row,) = table.rows
    assert row[1:3] == row[3:5]
    assert 1 <= int(row[5]) <= 6


def test_nothing_to_compare_with(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="neither a run of costlib nor MetaSchedule's"):
        report(str(run), tmp_path)
    with pytest.raises(InputError, match="is not a run"):
        report("cpu-gbdt", run)


def test_a_run_whose_bundle_is_gone(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    text = (copy / "result.json").read_text()
    (copy / "result.json").write_text(text.replace('"cpu-gbdt"', '"gone"'))
    section = next(s for s in report(str(copy)).sections if s.title.startswith("Predicted"))
    assert "gone" in section.text and not section.parts


@pytest.mark.parametrize("content", [None, "", "{}", "[1"])
def test_a_run_that_is_not_finished_or_damaged(
    run: Path, tmp_path: Path, content: str | None
) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "result.json").unlink()
    if content is not None:
        (copy / "result.json").write_text(content)
    with pytest.raises(InputError, match=r"result\.json"):
        report(str(copy))


def test_the_shipped_dataset() -> None:
    page = report(str(Path(__file__).parents[2] / "datasets" / "zoo"))
    (operators,) = tables(page)["Operators"]
    assert sum(int(row[2]) for row in operators.rows) == int(
        dict(page.facts)["measurements"].replace(",", "")
    )


@pytest.mark.parametrize("name", ["cpu-gbdt", "cpu-multi"])
def test_a_shipped_bundle(name: str) -> None:
    page = report(name)
    assert name in page.title
    ranking = tables(page)["How well it ranks"]
    assert ranking[1].rows[0][0] == "all" and len(ranking[1].rows) == 6
    assert {"ranking", "calibration", "learning"} <= {picture.name for picture in page.pictures}


def test_what_is_none_of_them(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError):
        report("no-such-thing")
    with pytest.raises(CostlibError, match="bundle"):
        report(str(tmp_path))


def test_the_command_writes_page_and_pictures(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    out, figures = tmp_path / "run.html", tmp_path / "figures"
    arguments = ["costlib", "report", str(run), "--out", str(out), "--figures", str(figures)]
    monkeypatch.setattr("sys.argv", arguments)
    assert run_command() == 0
    assert str(out) in capsys.readouterr().out
    assert out.read_text().startswith("<!doctype html>")
    assert len(list(figures.iterdir())) == 8


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium that cannot reach anything."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("no chromium and chromedriver on this machine")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--proxy-server=http://127.0.0.1:1",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driven = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield driven
    driven.quit()


@pytest.mark.parametrize("width", [360, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_in_a_browser(
    browser: Any, run: Path, tmp_path: Path, width: int, scheme: str
) -> None:
    for target in (str(run), "cpu-gbdt"):
        path = tmp_path / "page.html"
        save_page(report(target), path)
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(path.as_uri())
        assert not browser.get_log("browser"), "nothing is refused, nothing is missing"
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
        text, background = (_brightness(c) for c in browser.execute_script(colours))
        assert abs(text - background) > 150 and (text > background) == (scheme == "dark")
        labels = (
            "const t = document.querySelector('svg text');"
            "return [getComputedStyle(t).fill, t.getBoundingClientRect().width]"
        )
        fill, wide = browser.execute_script(labels)
        assert wide > 0 and (_brightness(fill) > 150) == (scheme == "dark")


def _brightness(colour: str) -> float:
    red, green, blue = (float(n) for n in colour[colour.index("(") + 1 : -1].split(",")[:3])
    return (red + green + blue) / 3


def test_a_page_says_what_its_numbers_are(run: Path) -> None:
    html = render(report(str(run)))
    assert "became best" in html and "GFLOP/s" in html
