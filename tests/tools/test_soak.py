"""The soak: its faults happen, its checks see what is wrong, and it says the truth about itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from costlib.schema import Status
from tools.evidence.files import read_result
from tools.evidence.soak import checks
from tools.evidence.soak.__main__ import do_round, summarise
from tools.evidence.soak.checks import Rows
from tools.evidence.soak.children import Child
from tools.evidence.soak.faults import Fault, preloaded
from tools.evidence.soak.rounds import KINDS, OPERATORS, Plan, Planner, Series

DATE = "from datetime import datetime; print(datetime.now().isoformat())"


def test_a_killed_collection_goes_on_and_false_rows_would_be_seen(
    tmp_path: Path, network_file: Callable[[str], str]
) -> None:
    series = Series(tmp_path / "out", [network_file("softmax 8 16")], programs=8)
    plan = Plan(0, 0, KINDS["collect, simulated"], Fault("kill", moment_s=2), series)
    record = do_round(plan, tmp_path, tmp_path / "kept")
    assert "problems" not in record, record["problems"]
    assert record["code_again"] == 0
    rows = Rows.at(tmp_path / "out")
    assert len(rows) == record["rows"][-1] == 8
    assert not list(checks.false_rows(plan, rows))
    slower = Rows(rows.frame.with_columns(pl.col("latency_s") * 2))
    assert len(list(checks.false_rows(plan, slower))) == len(rows)
    failed = Rows(rows.frame.with_columns(status=pl.lit(str(Status.RUN_ERROR))))
    assert "good programs failed" in next(checks.false_rows(plan, failed))
    fewer = Rows(rows.frame[1:])
    assert list(fewer.lost(rows)) == []
    assert "1 of" in next(rows.lost(fewer))
    assert "programs measured" in next(checks.count_problems(plan, fewer))


class Ended:
    """A command that has printed this."""

    def __init__(self, out: str, err: str) -> None:
        self.out, self.err = out, err


@pytest.mark.parametrize(
    ("fault", "code", "out", "err", "problem"),
    [
        ("none", 0, "{}", "", None),
        ("none", 1, "", "costlib: measuring failed", "exit code 1"),
        ("none", None, "", "", "hangs"),
        ("none", 0, "", "", "says nothing"),
        ("kill", -9, "", "", None),
        ("full disk", 4, "", "costlib: no space left", None),
        ("full disk", 4, "", "no space left", "without a line"),
        ("terminate", -2, "", "costlib: interrupted", None),
        ("terminate", 1, "", "costlib: interrupted", "exit code 1"),
        ("terminate", 130, "", "Traceback (most recent call last):\ncostlib: x", "a traceback"),
    ],
)
def test_how_commands_may_end(
    fault: str, code: int | None, out: str, err: str, problem: str | None
) -> None:
    found = list(checks.exit_problems(Fault(fault), code, cast("Child", Ended(out, err))))
    assert [problem in one for one in found] == [True] if problem else found == []


def test_growth_is_that_after_the_first_half() -> None:
    grows, stays = [100, 200, 230, 260], [100, 200, 201, 203]
    assert not list(checks.growth({"resident_mib": stays, "files": [3, 9, 9, 9]}))
    assert len(list(checks.growth({"resident_mib": grows, "files": [3, 9, 9, 10]}))) == 2


def test_clocks_jump_for_what_is_started_so(tmp_path: Path) -> None:
    tomorrow = Fault("clock", shift_s=86400).environment(preloaded(tmp_path))
    command = [sys.executable, "-c", DATE]
    shifted, plain = (
        datetime.fromisoformat(subprocess.check_output(command, env=env, text=True).strip())
        for env in (os.environ | tomorrow, os.environ)
    )
    assert (shifted - plain).total_seconds() == pytest.approx(86400, abs=600)


def test_a_seed_draws_the_same_rounds_and_all_kinds_and_faults_in_time(tmp_path: Path) -> None:
    for operator in OPERATORS:
        (tmp_path / f"{operator.split(maxsplit=1)[0]}.json").touch()
    one, two = (Planner(tmp_path, seed=7) for _ in range(2))
    plans = [one.plan(number) for number in range(200)]
    assert plans == [two.plan(number) for number in range(200)]
    assert {plan.kind.name for plan in plans} == KINDS.keys()
    assert {plan.fault.target for plan in plans} == {"leader", "all", "server"}
    assert len({plan.fault.name for plan in plans}) == 8


def test_the_committed_summary_counts_the_committed_rounds() -> None:
    result = read_result("soak")
    assert result["summary"] == json.loads(
        json.dumps(summarise(result["rounds"], result["sessions"]))
    )
    assert [one["round"] for one in result["rounds"]] == list(range(len(result["rounds"])))
