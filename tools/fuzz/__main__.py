"""Throw damaged files at everything that reads files: no crash, no hang, nothing but clear errors.

    python -m tools.fuzz --work runs/fuzz                 # 100,000 inputs for each loader
    python -m tools.fuzz --work runs/fuzz --only bundle --inputs 1000

Writes ``tools/results/fuzz.json`` and goes on where it was stopped; one process for each loader may
work at once. An input is a small valid set of files with one of them changed: bytes replaced, cut
out, put in, the end cut off; in JSON, also that of PyTorch's programs, a value exchanged for one
that hurts; in parquet a column. It is read in another process with limits on time and memory. What
is read without complaint is fine, and so is one of costlib's errors of one line; everything else is
a finding.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from costlib.errors import CostlibError
from tools.evidence.files import REPOSITORY, read_result, write_result
from tools.fuzz.damage import damage
from tools.fuzz.loaders import LOADERS, Load

INPUTS = 100_000
AT_ONCE = 4000
SECS_EACH = 60
"""More than a log's record may take TVM before it is given up."""
MEMORY_BYTES = 12 << 30
MOST_KEPT = 20


@dataclass
class Findings:
    """What became of the inputs of one loader."""

    inputs: int
    outcomes: Counter[str]
    findings: list[str]


def main() -> None:
    """Go through the loaders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=lambda text: Path(text).resolve(), required=True)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--only", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _child(arguments.only[0], arguments.work, *arguments.child)
        return
    end = time.monotonic() + 60 * arguments.minutes
    for name in arguments.only:
        seeds = arguments.work / "seeds" / name
        if not seeds.exists():
            from tools.fuzz.seeds import seed_files  # With it comes all that trains.

            seed_files(name, seeds)
        untouched = arguments.work / f"try-{name}"
        _fresh(seeds, untouched)
        LOADERS[name](untouched)
        known = read_result("fuzz").get(name, {"inputs": 0, "outcomes": {}, "findings": []})
        state = Findings(known["inputs"], Counter(known["outcomes"]), known["findings"])
        while state.inputs < arguments.inputs and time.monotonic() < end:
            stop = min(state.inputs + AT_ONCE, arguments.inputs)
            _some(name, arguments.work, state, stop)
            found = {
                "inputs": state.inputs,
                "outcomes": dict(sorted(state.outcomes.items())),
                "findings": state.findings[:MOST_KEPT],
            }
            write_result("fuzz", read_result("fuzz") | {name: found})
        print(name, state.inputs, dict(state.outcomes), state.findings[:3], flush=True)


def _some(name: str, work: Path, state: Findings, stop: int) -> None:
    """Let a child go through inputs up to ``stop``; note where it dies and go on behind that."""
    while state.inputs < stop:
        command = [sys.executable, "-m", "tools.fuzz", "--work", str(work), "--only", name]
        command += ["--child", str(state.inputs), str(stop)]
        child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=REPOSITORY
        )
        assert child.stdout is not None
        for line in child.stdout:
            state.inputs += 1
            outcome, _, detail = line.decode().strip().partition(" ")
            state.outcomes[outcome] += 1
            if detail:
                state.findings.append(f"input {state.inputs - 1}: {detail}")
        status = child.wait()
        if status:
            died = signal.Signals(-status).name if status < 0 else f"exit {status}"
            kind = "hang" if died == "SIGALRM" else "crash"
            state.outcomes[kind] += 1
            state.findings.append(f"input {state.inputs}: {kind} ({died})")
            shutil.copytree(
                work / f"try-{name}", work / f"{name}-{state.inputs}", dirs_exist_ok=True
            )
            state.inputs += 1


def _child(name: str, work: Path, start: int, stop: int) -> None:
    """Go through some inputs; a line on the standard output for each."""
    load, seeds, folder = LOADERS[name], work / "seeds" / name, work / f"try-{name}"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lines = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for number in range(start, stop):
        _fresh(seeds, folder)
        damage(folder, np.random.default_rng(number))
        signal.alarm(SECS_EACH)
        outcome = _read(load, folder)
        signal.alarm(0)
        os.write(lines, f"{outcome}\n".encode())


def _fresh(seeds: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(seeds, folder)


def _read(load: Load, folder: Path) -> str:
    try:
        load(folder)
    except CostlibError as error:
        if "\n" in str(error).strip():
            return f"finding several lines: {error!r}".replace("\n", "\\n")[:300]
        return "refused"
    except BaseException as error:
        return f"finding {type(error).__name__}: {error}".replace("\n", " ")[:300]
    return "accepted"


if __name__ == "__main__":
    main()
