from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from command_line import costlib

FIXTURES = Path(__file__).parent.parent / "logs" / "fixtures"


def answer(process: subprocess.CompletedProcess[str]) -> Any:
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def test_import_and_export(tmp_path: Path) -> None:
    data = tmp_path / "data"
    report = answer(costlib("import", FIXTURES, "--out", data, "--json"))
    assert report["imported"] == report["records"] == 10
    assert report["failed_measurements"] == 2
    assert report["skipped"] == {"not a tuning log": 1}
    assert {"file", "records", "imported", "failed_measurements", "skipped"} <= report["files"][
        0
    ].keys()
    assert (data / "README.md").is_file()
    again = costlib("import", FIXTURES, "--out", data)
    assert again.returncode == 0
    assert "0 of 10 records imported" in again.stdout
    exported = answer(costlib("export", data, "--metaschedule", tmp_path / "db", "--json"))
    assert exported == {"records": 2, "exported": 2, "skipped": {}}


def test_nothing_to_import_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("hello")
    for log, hint in (("log", "not a tuning log"), ("no-such-file", "no-such-file")):
        process = costlib("import", tmp_path / log, "--out", tmp_path / "data")
        assert process.returncode == 2
        assert hint in process.stderr.strip().splitlines()[-1]
        assert "Traceback" not in process.stderr
    assert not (tmp_path / "data").exists()


def test_the_workloads_of_a_log_can_be_given(tmp_path: Path) -> None:
    folder = FIXTURES / "metaschedule_tvm0.12"
    records = shutil.copy(folder / "database_tuning_record.json", tmp_path / "tuned.json")
    alone = costlib("import", records, "--out", tmp_path / "data")
    assert alone.returncode == 2
    assert "--workloads" in alone.stderr
    workloads = ("--workloads", folder / "database_workload.json")
    report = answer(costlib("import", records, "--out", tmp_path / "data", *workloads, "--json"))
    assert report["imported"] == 1


def test_help_shows_an_example() -> None:
    for command in ("import", "export"):
        text = costlib(command, "--help").stdout
        assert f"costlib {command}" in text
        assert "Example" in text
