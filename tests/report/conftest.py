"""One run, one browser and one set of pages, made once for all tests of reports."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_profile, made_result, write_run

from costlib.data.dataset import Dataset
from costlib.hub import Bundle
from costlib.hub.evaluate import examine, judged_on
from costlib.report import compare, report
from costlib.report.evaluation import evaluation_report
from costlib.report.page import save_page
from costlib.tuning.tune import tune

SOURCE = "matmul 64 64 64"


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "run"
    tune(SOURCE, out=folder, trials=6)
    return folder


@pytest.fixture(scope="session")
def pages(
    tmp_path_factory: pytest.TempPathFactory, run: Path, dataset: Dataset, bundle: Bundle
) -> list[Path]:
    """A page of each kind, of things of all sizes."""
    folder = tmp_path_factory.mktemp("pages")
    hostile = made_result(("<b>&\"'</b>" * 20,), bundle="<script>alert(1)</script>")
    seeds = [write_run(folder / f"seed{n}", made_result(seed=n, faster=1 + n / 9)) for n in (0, 1)]
    cold = write_run(folder / "cold", made_result(faster=0.8, bundle="other"))
    many = made_result(tuple(f"network_{n}" for n in range(25)), tasks=60, trials=240)
    empty = folder / "empty"
    empty.mkdir()
    (empty / "run.json").write_text(json.dumps({"networks": ["net"]}))
    everything = {"hardware_id": None, "everything": True}
    made = {
        "run": report(str(run), run),
        "hostile": report(str(write_run(folder / "hostile", hostile, made_profile(hostile)))),
        "many": report(str(write_run(folder / "many", many, made_profile(many)))),
        "nothing": report(str(empty)),
        "dataset": report(str(dataset.path)),
        "bundle": report("cpu-gbdt"),
        "compared": compare(
            [*map(str, (*seeds, cold)), "cpu-gbdt", "cpu-multi", str(dataset.path)]
        ),
        "evaluated": evaluation_report(
            bundle, examine(bundle, dataset, **everything), judged_on(bundle, dataset, **everything)
        ),
    }
    files = []
    for name, page in made.items():
        files.append(folder / f"{name}.html")
        save_page(page, files[-1])
    return files


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium that reaches this machine alone."""
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
