"""The wheel, in an environment that knows nothing of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., str]


@pytest.fixture(scope="module")
def costlib(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What runs the installed command; the packages it needs are those of this environment."""
    folder = tmp_path_factory.mktemp("installed")
    checkout = Path(__file__).parent.parent
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=checkout, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "env")
    python = folder / "env" / "bin" / "python"
    paths = {"base": str(folder / "env"), "platbase": str(folder / "env")}
    site = Path(sysconfig.get_path("purelib", "venv", paths))
    zipfile.ZipFile(wheel).extractall(site)
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}

    def run(*arguments: object) -> str:
        command = [python, "-m", "costlib", *map(str, arguments)]
        found = subprocess.run(
            command, cwd=folder, env=kept, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    where = "import costlib; print(costlib.__file__)"
    found = subprocess.run([python, "-c", where], cwd=folder, env=kept, stdout=-1, check=True)
    assert str(folder).encode() in found.stdout
    return run


def test_bundles_come_with_it(costlib: Run) -> None:
    assert {one["name"] for one in json.loads(costlib("models", "--json"))} >= {"cpu-gbdt"}
    assert json.loads(costlib("evaluate", "cpu-gbdt", "--json"))["top1"] > 0


def test_it_tunes_and_reports(
    costlib: Run, tmp_path: Path, network_file: Callable[[str], str]
) -> None:
    run, page = tmp_path / "run", tmp_path / "page.html"
    costlib("tune", network_file("matmul 16 16 16"), "--trials", 1, "--out", run, "--quiet")
    costlib("report", run, "--out", page)
    assert page.read_text().startswith("<!doctype html>")
    assert "no problems" in costlib("dataset", "verify", run / "trials")
