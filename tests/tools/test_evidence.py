"""``python -m tools.evidence``: its steps, what it keeps of them, and what it publishes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from costlib.files import write_file
from costlib.hardware import Hardware
from tools.evidence import __main__ as command
from tools.evidence import commit, publish
from tools.evidence.files import REPOSITORY
from tools.evidence.processes import run_step
from tools.evidence.provenance import Measured, Provenance, Run, provenance
from tools.evidence.races import Race, RacedTask, Side
from tools.evidence.step import PEER, Shown, Step, ordered
from tools.evidence.steps import STEPS
from tools.evidence.store import Store
from tools.evidence.work import Work

DEMANDED = {
    *("networks_resnet_50", "heavy", "long", "peers", "engines", "precision", "shapes"),
    *(
        "surrogate",
        "ablation",
        "transfer",
        "leaderboard",
        "model_speed",
        "measure",
        "cache_state",
        "data",
    ),
    *("scale", "soak", "coverage", "fuzz", "ceiling", "directions"),
}
FINE = Step("fine", "calendar", "2026 1", None, result="days", shown=Shown("days", "all", "days"))
BROKEN = Step("broken", "json.tool", "nowhere.json", None)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work("abcdef0123", Hardware.local().hardware_id, tmp_path)


def test_a_night_is_enough_and_half_an_hour_for_a_quick_run() -> None:
    assert {step.name for step in STEPS} >= DEMANDED
    assert len({step.name for step in STEPS}) == len(STEPS)
    anybodys = [step for step in STEPS if step.name != "peers"]
    assert sum(step.minutes for step in anybodys) <= 600
    assert sum(step.quick_minutes for step in anybodys) < 30


def test_the_cheapest_comes_first_and_none_before_what_it_builds_on() -> None:
    cheap, dear = Step("cheap", "a", "", None, 1), Step("dear", "a", "", None, 9)
    built = Step("built", "a", "", None, 2, after=("dear", "of the quick run"))
    quick = Step("of the quick run", "a", None, "", 1)
    found = ordered([dear, built, quick, cheap])
    assert [step.name for step in found] == ["cheap", "dear", "built"]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_a_step_calls_a_module_with_options_that_it_has(step: Step) -> None:
    spec = find_spec(step.module)
    assert spec is not None and spec.origin is not None
    file = Path(spec.origin)
    text = (file.with_name("__main__.py") if file.name == "__init__.py" else file).read_text()
    for arguments in (step.full, step.quick):
        for word in shlex.split(arguments or ""):
            if word.startswith("--") and step.module != "costlib":
                assert f'"{word}"' in text, word


def test_seeds_are_read_from_the_arguments() -> None:
    assert Step("x", "a", "--seeds 0 1 2 --only 3", None).seeds == (0, 1, 2)
    assert Step("x", "a", "--minutes 8 --seed 4", None).seeds == (4,)
    assert Step("x", "a", "--minutes 8", None).seeds == ()


def test_what_cannot_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Step("x", "a", "", None, after=("y",), packages=("no_such_package",))
    assert "no_such_package not installed" in str(step.hindrance(()))
    waiting = Step("x", "a", "", None, after=("y",))
    assert waiting.hindrance(("y", "z")) == "builds on y"
    assert waiting.hindrance(("z",)) is None
    (peers,) = (step for step in STEPS if step.name == "peers")
    monkeypatch.delenv(PEER, raising=False)
    assert PEER in str(peers.hindrance(()))


def test_a_complete_step_is_known_by_its_command(work: Work) -> None:
    assert run_step(work, FINE) is None
    record = work.record(FINE)
    assert record is not None
    assert (record.state, record.commit, record.machine) == (
        "complete",
        work.commit,
        work.machine,
    )
    assert record.versions["costlib"]
    assert "January 2026" in work.log(FINE).read_text()
    assert work.is_complete(FINE)
    assert not work.is_complete(Step("fine", "calendar", "2026 2", None))


@pytest.fixture
def frozen(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured is what the made-up commit says."""
    monkeypatch.setattr(command, "measured_commit", lambda: work.commit)
    monkeypatch.setattr(command, "uncommitted", list)


@pytest.mark.usefixtures("frozen")
def test_a_failed_step_costs_no_other_one(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    assert command._run(work, [BROKEN, FINE], [BROKEN, FINE]) == ["broken"]
    out = capsys.readouterr().out
    assert "broken: failed: exit" in out
    assert "nowhere.json" in out
    assert "fine: complete" in out
    assert [work.is_complete(step) for step in (BROKEN, FINE)] == [False, True]
    assert command._run(work, [BROKEN, FINE], [BROKEN, FINE]) == ["broken"]
    assert "1 of 2 steps are complete" in capsys.readouterr().out


@pytest.mark.usefixtures("frozen")
def test_a_commit_meanwhile_ends_the_run_before_the_next_step(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = iter([work.commit, "0123456789"])
    monkeypatch.setattr(command, "measured_commit", lambda: next(commits))
    other = Step("other", "calendar", "2026 2", None)
    with pytest.raises(SystemExit, match="now of commit 0123456789"):
        command._run(work, [FINE, other], [FINE, other])
    assert [work.is_complete(step) for step in (FINE, other)] == [True, False]


def test_an_interruption_reaches_the_step_and_the_next_call_goes_on(work: Work) -> None:
    text = (
        "from pathlib import Path\n"
        "from tools.evidence.processes import heed_interruptions, run_step\n"
        "from tools.evidence.step import Step\n"
        "from tools.evidence.work import Work\n"
        "heed_interruptions()\n"
        f"work = Work({work.commit!r}, {work.machine!r}, Path({str(work.folder.parents[1])!r}))\n"
        "run_step(work, Step('slow', 'timeit', '-n 1 -s \"import time; print(1, flush=True)\" "
        "time.sleep(60)', None))\n"
    )
    ours = subprocess.Popen([sys.executable, "-c", text], cwd=REPOSITORY, stderr=subprocess.PIPE)
    slow = Step(
        "slow", "timeit", '-n 1 -s "import time; print(1, flush=True)" time.sleep(60)', None
    )
    end = time.monotonic() + 240
    while not (work.log(slow).exists() and work.log(slow).read_text()):
        assert time.monotonic() < end
        time.sleep(0.1)
    ours.send_signal(signal.SIGINT)
    _, errors = ours.communicate(timeout=60)
    assert b"KeyboardInterrupt" in errors
    record = work.record(slow)
    assert record is not None
    assert record.state == "cut off"
    assert not work.is_complete(slow)
    assert "KeyboardInterrupt" in work.log(slow).read_text()


def test_a_file_is_complete_when_all_that_write_it_are(work: Work) -> None:
    other = Step("other", "calendar", "2026 3", None, result="days")
    run_step(work, FINE)
    assert publish.complete_files(work, [FINE, other]) == []
    run_step(work, other)
    assert publish.complete_files(work, [FINE, other]) == ["days"]


def test_pieces_need_not_wait_for_those_of_other_steps(work: Work) -> None:
    heavy, long = (
        Step(name, "calendar", "2026 1", None, result="search", pieces=f"{name}-")
        for name in ("heavy", "long")
    )
    run_step(work, heavy)
    assert publish.complete_files(work, [heavy, long]) == ["search"]


def test_a_run_takes_the_place_of_what_its_benchmark_had(work: Work) -> None:
    step = Step(
        "fine", "calendar", "2026 1", None, shown=Shown("measure", "all of it", "measuring")
    )
    run_step(work, step)
    of_old = run("whole networks", "elsewhere"), run("single tasks", "elsewhere")
    old = {name: Measured(page=name, runs=of_old) for name in ("measure", "search")}
    known = provenance().model_copy(update={"benchmarks": old})
    found = publish.with_runs(known, work, Hardware.local(), [step])
    (new,) = found.benchmarks["measure"].runs
    assert (new.part, new.commit, new.machine) == ("all of it", work.commit, work.machine)
    assert found.newest == new
    assert found.benchmarks["search"] == known.benchmarks["search"]
    assert found.is_older(found.benchmarks["search"].runs[0])
    assert work.machine in found.machines


def test_what_is_complete_takes_the_place_of_committed_files(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = tmp_path / "committed"
    write_file(committed / "vector_math.json", b"old")
    write_file(committed / "measure.json", b"old")
    (step,) = (step for step in STEPS if step.name == "vector_math")
    other = Step("other", "calendar", "2026 1", None, result="measure")
    write_file(work.results / "vector_math.json", b"new")
    write_file(work.results / "measure.json", b"half of it")
    work.note(step, "complete", 1)
    work.note(other, "cut off", 1)
    monkeypatch.setattr(publish, "COMMITTED", committed)
    monkeypatch.setattr(publish, "write_summaries", lambda: None)
    monkeypatch.setattr(publish, "_pages", lambda _: None)
    assert publish.publish(work, Hardware.local(), [step, other]) == ["vector_math"]
    assert (committed / "vector_math.json").read_bytes() == b"new"
    assert (committed / "measure.json").read_bytes() == b"old"
    noted = Provenance.model_validate_json((committed / "provenance.json").read_text())
    (run,) = noted.benchmarks["vector_math"].runs
    assert run.commit == work.commit
    assert run.versions["apache-tvm"]
    assert noted.benchmarks["measure"] == provenance().benchmarks["measure"]


def test_pieces_take_the_place_of_the_same_of_other_machines_alone(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Store("search", Race, tmp_path / "committed")
    for what in ("bert_tiny", "resnet_50"):
        elsewhere.save(race(what, "elsewhere"))
    elsewhere.pack()
    here = Store("search", Race, work.results)
    here.save(race("bert_tiny", work.machine))
    steps = {step.name: step for step in STEPS}
    work.note(steps["networks_bert_tiny"], "complete", 1)
    others = run("single tasks", "elsewhere"), run("whole networks", "elsewhere")
    benchmarks = {"search": Measured(page="search", runs=others)}
    known = provenance().model_copy(update={"benchmarks": benchmarks})
    monkeypatch.setattr(publish, "provenance", lambda: known)
    monkeypatch.setattr(publish, "COMMITTED", elsewhere.folder)
    monkeypatch.setattr(publish, "STORES", {"search": elsewhere})
    monkeypatch.setattr(publish, "write_summaries", lambda: None)
    monkeypatch.setattr(publish, "_pages", lambda _: None)

    publish.publish(work, Hardware.local(), STEPS)
    assert [one.hardware for one in elsewhere.load()] == [work.machine, "elsewhere"]
    *before, ours = noted(elsewhere.folder)
    assert before == [*others]
    assert (ours.part, ours.machine) == ("whole networks", work.machine)

    here.save(race("resnet_50", work.machine))
    for step in STEPS:
        if step.name.startswith("networks_"):
            work.note(step, "complete", 1)
    publish.publish(work, Hardware.local(), STEPS)
    assert {one.hardware for one in elsewhere.load()} == {work.machine}
    assert [one.machine for one in noted(elsewhere.folder)] == ["elsewhere", *[work.machine] * 5]


def race(what: str, hardware: str) -> Race:
    side = Side(trials=((0, 1e-3, 1.5),), active_s=2.0, measure_s=1.0)
    task = RacedTask(name="matmul", workload_id="a" * 16, weight=1, flops=2e6)
    return Race(
        kind="network", what=what, seed=0, hardware=hardware, tasks=(task,), sides={"stock": side}
    )


def run(part: str, machine: str) -> Run:
    return Run(
        part=part, command="x", machine=machine, measured=("2026-01-01", "2026-01-01"), since=()
    )


def noted(folder: Path) -> list[Run]:
    text = (folder / "provenance.json").read_text()
    return list(Provenance.model_validate_json(text).benchmarks["search"].runs)


@pytest.mark.parametrize(("rounds", "published"), [(2, []), (3, ["soak"])])
def test_what_tried_less_takes_no_place(
    rounds: int,
    published: list[str],
    work: Work,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    committed = tmp_path / "committed"
    write_file(committed / "soak.json", b'{"rounds": [1, 2, 3]}')
    (step,) = (step for step in STEPS if step.name == "soak")
    write_file(work.results / "soak.json", json.dumps({"rounds": [0] * rounds}).encode())
    work.note(step, "complete", 1)
    monkeypatch.setattr(publish, "COMMITTED", committed)
    monkeypatch.setattr(publish, "write_summaries", lambda: None)
    monkeypatch.setattr(publish, "_pages", lambda _: None)
    assert publish.publish(work, Hardware.local(), [step]) == published


def test_results_of_a_run_lie_in_its_own_folder(tmp_path: Path) -> None:
    text = (
        "from tools.evidence import files, protocol\n"
        "from tools.evidence.stores import SEARCH\n"
        "files.write_result('x', {'a': 1})\n"
        "print(protocol.HEAVY_TRIALS, SEARCH.folder, files.read_result('search'))"
    )
    environment = {**os.environ, "COSTLIB_RESULTS": str(tmp_path), "COSTLIB_QUICK": "1"}
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    trials, folder, nothing = done.stdout.split()
    assert int(trials) < 200
    assert (Path(folder), nothing) == (tmp_path, "{}")
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": 1}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(commit, "REPOSITORY", tmp_path)
    for name, value in (("user.name", "nobody"), ("user.email", "nobody@localhost")):
        monkeypatch.setenv(f"GIT_AUTHOR_{name.split('.')[1].upper()}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name.split('.')[1].upper()}", value)
    git(tmp_path, "init", "-q")
    write_file(tmp_path / "costlib" / "code.py", b"1\n")
    commit_all(tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def commit_all(folder: Path) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a change")


def test_only_what_is_measured_makes_another_commit(repository: Path) -> None:
    first = commit.measured_commit()
    write_file(repository / "docs" / "page.md", b"words\n")
    assert commit.uncommitted() == []
    commit_all(repository)
    assert commit.measured_commit() == first != commit.head()
    write_file(repository / "costlib" / "code.py", b"2\n")
    write_file(repository / "costlib" / "new.py", b"3\n")
    assert commit.uncommitted() == ["costlib/code.py", "costlib/new.py"]
    commit_all(repository)
    assert commit.measured_commit() == commit.head()


def test_code_that_is_not_committed_is_not_measured(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(repository / "costlib" / "code.py", b"2\n")
    monkeypatch.setattr(sys, "argv", ["evidence"])
    monkeypatch.setattr(command, "_run", lambda *_: pytest.fail("it measures"))
    with pytest.raises(SystemExit, match=r"^commit first, .*: costlib/code\.py$"):
        command.main()
