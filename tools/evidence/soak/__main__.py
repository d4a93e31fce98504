"""Tune and collect for hours, over the simulated and the real device, while things go wrong.

    python -m tools.evidence.soak --minutes 240
    python -m tools.evidence.soak --minutes 10 --kinds "tune, simulated" "collect, simulated"

Each round runs a command, lets one fault happen to it at a random moment (or none), runs the same
command again without a fault, and checks: exit codes and lines, that ``verify`` finds nothing, that
no row is lost or false, that no process and no file is left over. Some rounds do the same things
again and again in one process, which must not grow. Rounds are added to
``tools/results/soak.json``; call again to go on. A round that finds something is written down, its
folder is kept, and the soak goes on.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from costlib.hardware import Hardware
from tools.evidence.commit import head
from tools.evidence.files import read_result, write_result
from tools.evidence.soak import checks
from tools.evidence.soak.children import Child
from tools.evidence.soak.faults import Fault, preloaded, small_disk
from tools.evidence.soak.rounds import KINDS, Plan, Planner, described

_PACKAGES = ("apache-tvm", "numpy", "polars", "pyarrow", "torch")

Json = dict[str, Any]


def main() -> None:
    """Do rounds until time is up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--round", type=int, help="Do this one alone, in a folder of its own; write nothing."
    )
    parser.add_argument(
        "--keep",
        type=lambda text: Path(text).resolve(),
        default=Path(tempfile.gettempdir(), "soak-problems"),
        help="Where the folders of rounds that found something go.",
    )
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
        planner = Planner(Path(folder), arguments.seed, arguments.kinds)
        if arguments.round is not None:
            print(do_round(planner.plan(arguments.round), Path(folder), arguments.keep))
            return
        _soak(planner, Path(folder), arguments.keep, 60 * arguments.minutes)


def _soak(planner: Planner, work: Path, keep: Path, secs: float) -> None:
    result = read_result("soak") or {"sessions": [], "rounds": []}
    session = _session(planner.seed, planner.kinds)
    sessions, rounds = [*result["sessions"], session], result["rounds"]
    start = time.monotonic()
    while time.monotonic() < start + secs:
        plan = planner.plan(len(rounds))
        record = do_round(plan, work, keep)
        if "problems" in record:
            planner.forget(plan)
        rounds.append(record | {"session": len(sessions) - 1})
        session["minutes"] = round((time.monotonic() - start) / 60, 1)
        summary = summarise(rounds, sessions)
        write_result("soak", {"summary": summary, "sessions": sessions, "rounds": rounds})
        words = ("round", "kind", "fault", "outcome", "problems")
        print(*(record.get(word, "") for word in words), flush=True)


def do_round(plan: Plan, work: Path, keep: Path) -> Json:
    """Do a round.

    Parameters
    ----------
    plan
        What to do.
    work
        A folder for everything.
    keep
        Where the round's folder goes if something was wrong.

    Returns
    -------
    dict
        The round's record.
    """
    began = time.monotonic()
    library = work / "faults.so"
    if not library.exists():
        library = preloaded(work)
    round_ = _Round(plan, work / "logs" / str(plan.number), library)
    if plan.fault.needs_small_disk:
        with small_disk(work / "small") as disk:
            fills_temporary = plan.fault.name == "full temporary folder"
            temporary = (disk.folder if fills_temporary else work) / "tmp"
            problems = list(round_.problems(temporary, disk.fill, disk.empty))
            _keep(plan, round_.logs, keep, problems)
    else:
        problems = list(round_.problems(work / "tmp", lambda child: None, lambda: None))
        _keep(plan, round_.logs, keep, problems)
    record = described(plan) | round_.found | {"took_s": round(time.monotonic() - began, 1)}
    if problems:
        record["problems"] = problems
        record["command"] = " ".join(plan.command()).replace(str(work), "WORK")
        record["command"] = record["command"].replace(sys.executable, "python")
    return record


class _Round:
    """A round at work; notes what it finds out in :attr:`found`."""

    def __init__(self, plan: Plan, logs: Path, library: Path) -> None:
        self.plan = plan
        self.logs = logs
        self.found: Json = {}
        self._library = library

    def problems(self, temporary: Path, fill: Any, empty: Any) -> Iterator[str]:
        """Run the command twice, and yield what is wrong."""
        plan = self.plan
        temporary.mkdir(parents=True, exist_ok=True)
        path = plan.kind.dataset(plan.out)
        before = checks.Rows.at(path)
        environment = {"TMPDIR": str(temporary)}
        at_fault = environment | plan.fault.environment(self._library)
        with Child(plan.command(), self.logs, "first", at_fault) as child:
            struck = plan.fault.strike(child, fill)
            yield from self._ended("first", child, plan.fault if struck else Fault("none"))
        self.found["outcome"] = self._outcome(struck)
        empty()
        if plan.kind.words[-1] == "repeat":
            yield from self._repeated(child)
            return
        meanwhile = checks.Rows.at(path)
        yield from before.lost(meanwhile)
        yield from (f"first: {problem}" for problem in checks.dataset_problems(path))
        with Child(plan.command(), self.logs, "again", environment) as again:
            yield from self._ended("again", again, Fault("none"))
        after = checks.Rows.at(path)
        self.found["rows"] = [len(before), len(meanwhile), len(after)]
        yield from meanwhile.lost(after)
        yield from checks.dataset_problems(path)
        yield from checks.count_problems(plan, after)
        yield from checks.false_rows(plan, after)
        yield from checks.leftovers(plan, temporary)

    def _ended(self, which: str, child: Child, fault: Fault) -> Iterator[str]:
        code, left = child.end()
        self.found[f"code_{which}"] = code
        if left:
            yield f"{which}: {left} processes left"
        yield from (f"{which}: {problem}" for problem in checks.exit_problems(fault, code, child))

    def _outcome(self, struck: bool) -> str:
        if self.plan.fault.name == "none":
            return "undisturbed"
        if not struck:
            return "over before"
        return "went on" if self.found["code_first"] == 0 else "ended"

    def _repeated(self, child: Child) -> Iterator[str]:
        if self.found["code_first"] == 0:
            self.found["held"] = checks.held_by(child)
            yield from checks.growth(self.found["held"])


def _keep(plan: Plan, logs: Path, keep: Path, problems: Sequence[str]) -> None:
    """Keep the folder of a round with problems, so that the next ones do not meet them again."""
    if problems:
        kept = keep / f"{plan.seed}-{plan.number}"
        for folder in (plan.out, logs):
            if folder.exists():
                shutil.copytree(folder, kept / folder.parent.name, dirs_exist_ok=True)


def summarise(rounds: Sequence[Json], sessions: Sequence[Json]) -> Json:
    """Count the rounds."""
    struck = [one for one in rounds if one["outcome"] != "over before"]
    return {
        "minutes": round(sum(session["minutes"] for session in sessions), 1),
        "rounds": len(rounds),
        "problems": sum(len(one.get("problems", ())) for one in rounds),
        "kinds": dict(sorted(Counter(one["kind"] for one in rounds).items())),
        "faults": dict(sorted(Counter(_fault(one) for one in struck).items())),
        "rows": sum(one["rows"][-1] - one["rows"][0] for one in rounds if "rows" in one),
    }


def _fault(record: Json) -> str:
    return " ".join(record[key] for key in ("fault", "target") if key in record)


def _session(seed: int, kinds: Sequence[str]) -> Json:
    options = "" if list(kinds) == list(KINDS) else " --kinds " + shlex.join(kinds)
    return {
        "command": f"python -m tools.evidence.soak --seed {seed}{options}",
        "seed": seed,
        "commit": head(),
        "hardware_id": Hardware.local().hardware_id,
        "versions": {name: version(name) for name in _PACKAGES},
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
        "minutes": 0.0,
    }


if __name__ == "__main__":
    main()
