"""Measure anew everything that the documentation claims, on one machine and of one commit.

    python -m tools.evidence               # a night; into tools/results and docs/results
    python -m tools.evidence --quick       # half an hour: every section, with wide error bars
    python -m tools.evidence --list        # the steps, what they take, and how far they are
    python -m tools.evidence --only measure vector_math

Each step is a process of its own; one that fails costs what it measures, and no other. What it has
measured is kept in ``evidence_run`` (:mod:`tools.evidence.work`), so after Ctrl-C or a crash the
same call goes on, and a step that is complete for this commit and machine is not run again. A full
run puts results that are complete in the place of the committed ones. A quick run leaves those
alone and writes pages of its own.

What is measured must be committed, so that the commit says what it was.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence

from costlib.hardware import Hardware
from tools.evidence.commit import measured_commit, uncommitted
from tools.evidence.processes import heed_interruptions, run_step
from tools.evidence.protocol import QUICK
from tools.evidence.publish import publish, show
from tools.evidence.step import Step, ordered
from tools.evidence.steps import STEPS
from tools.evidence.work import Work

_INTERRUPTED = 130


def main() -> None:
    """Run what is not complete."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few trials, programs and networks")
    parser.add_argument("--only", nargs="+", metavar="STEP", choices=[step.name for step in STEPS])
    parser.add_argument("--list", action="store_true", help="show the steps and run none")
    given = parser.parse_args()
    if given.quick and not QUICK:
        os.environ["COSTLIB_QUICK"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "tools.evidence", *sys.argv[1:]])
    hardware = Hardware.local()
    work, steps = Work(measured_commit(), hardware.hardware_id), ordered(STEPS)
    wanted = [step for step in steps if given.only is None or step.name in given.only]
    if given.list:
        _list(work, wanted)
        return
    _check(work)
    heed_interruptions()
    try:
        failed = _run(work, steps, wanted)
    except KeyboardInterrupt:
        print("\ninterrupted; call again to go on", file=sys.stderr)
        sys.exit(_INTERRUPTED)
    if QUICK:
        show(work, hardware, steps)
        print(f"pages: {work.pages}")
    else:
        files = publish(work, hardware, steps)
        print(f"into tools/results: {', '.join(files) or 'nothing is complete yet'}")
    sys.exit(bool(failed))


def _check(work: Work) -> None:
    """End with a line if what is measured is not what the commit says."""
    if changed := uncommitted():
        sys.exit(f"commit first, or nobody can tell what was measured: {', '.join(changed)}")
    if (now := measured_commit()) != work.commit:
        sys.exit(f"what is measured is now of commit {now}, not of {work.commit}; call again")


def _run(work: Work, steps: Sequence[Step], wanted: Sequence[Step]) -> list[str]:
    """Run the wanted steps that are not complete; return those that failed."""
    failed: list[str] = []
    todo = [step for step in wanted if not work.is_complete(step)]
    print(f"{len(wanted) - len(todo)} of {len(wanted)} steps are complete: {work.folder}")
    for place, step in enumerate(todo, 1):
        pending = [one.name for one in steps if not work.is_complete(one)]
        if hindrance := step.hindrance(pending):
            print(f"[{place}/{len(todo)}] {step.name}: skipped: {hindrance}", flush=True)
            continue
        _check(work)
        left = _minutes(todo[place - 1 :])
        print(
            f"[{place}/{len(todo)}] {step.name}: about {step.estimate:g} min; "
            f"with all that follow, {left:.0f} min",
            flush=True,
        )
        began = time.monotonic()
        problem = run_step(work, step)
        minutes = (time.monotonic() - began) / 60
        if problem is None:
            print(f"{step.name}: complete after {minutes:.1f} min", flush=True)
        else:
            failed.append(step.name)
            print(f"{step.name}: failed: {problem}; see {work.log(step)}", flush=True)
    return failed


def _list(work: Work, steps: Sequence[Step]) -> None:
    for step in steps:
        record = work.record(step)
        state = record.state if record else step.hindrance(()) or ""
        print(f"{step.name:12} {step.estimate:6.1f} min  {state:9}  {step.command}")
    print(f"{'all':12} {_minutes(steps):6.1f} min")


def _minutes(steps: Sequence[Step]) -> float:
    """Return what those that can run here take together."""
    return sum(step.estimate for step in steps if step.hindrance(()) is None)


if __name__ == "__main__":
    main()
