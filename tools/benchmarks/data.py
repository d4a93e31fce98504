"""Measure the way from a dataset to a trained model: cost per program, memory, other formats.

    python -m tools.benchmarks.data --source datasets/zoo --work runs/data

Writes ``tools/results/data.json`` after each phase; called again it goes on with what is missing.
``--programs 100000`` leaves out the larger sizes; 10 million programs take 2.5 GB in ``--work``.

The programs are synthetic: 4,000 for each task, drawn from the source's measured programs of one
task, with a quarter of the features that are neither 0 nor 1 moved by up to 10 % and latencies by
about 5 %. They say something about cost and memory, nothing about how well a model ranks.

- ``stream``: all batches, pooled. ``train``: LightGBM out of core, 10 trees.
- ``formats``: the same programs as features and latencies in one pickle, as TenSet's, and as tuning
  records in MetaSchedule's JSON, which hold no features: computing those comes on top of loading.
  Also for the source itself, because made-up noise compresses unlike measured programs.

Each phase runs in a process of its own; memory is its peak resident set.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from tools.benchmarks.in_a_process import in_a_process, peak_mib
from tools.evidence.files import read_result, write_result

SIZES = (100_000, 1_000_000, 10_000_000)
FORMAT_PROGRAMS = 20_000


def main() -> None:
    """Run the phases whose results are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--programs", type=int, nargs="+", default=SIZES)
    parser.add_argument("--phase", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.phase:
        run_here(arguments)
        return
    result = read_result("data")
    if result.setdefault("made_from", arguments.source.name) != arguments.source.name:
        parser.error(
            f"tools/results/data.json is of {result['made_from']}; remove it to start anew"
        )
    wanted = [(size, phase) for size in arguments.programs for phase in SCALE_PHASES]
    wanted += [(FORMAT_PROGRAMS, phase) for phase in ("generate", *FORMAT_PHASES)]
    wanted += [(0, phase) for phase in FORMAT_PHASES]
    for size, phase in wanted:
        done = result.setdefault(f"{size} programs" if size else "source", {})
        if phase not in done:
            done[phase] = run_phase(arguments, size, phase)
            print(size, phase, done[phase], flush=True)
            write_result("data", result)


def run_phase(arguments: argparse.Namespace, size: int, phase: str) -> dict[str, Any]:
    """Run one phase and return what it says."""
    given = {"source": arguments.source.resolve(), "work": arguments.work.resolve()}
    given |= {"programs": size, "phase": phase}
    options = [text for name, value in given.items() for text in (f"--{name}", str(value))]
    return in_a_process("tools.benchmarks.data", *options)


def run_here(arguments: argparse.Namespace) -> None:
    """Run a phase and print its figures."""
    from tools.benchmarks import data_phases as phases

    (size,) = arguments.programs
    folder = arguments.work / f"programs-{size}"
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    extra = getattr(phases, arguments.phase)(folder, arguments.source, size)
    seconds = time.perf_counter() - started
    figures = {
        "seconds": round(seconds, 2),
        "us_per_program": round(1e6 * seconds / extra["programs"], 2),
        "peak_mib": peak_mib(),
    }
    print(json.dumps(figures | extra))


SCALE_PHASES = ("generate", "stream", "train")
FORMAT_PHASES = (
    "write_formats",
    "load_costlib",
    "load_pickle",
    "load_metaschedule_json",
)

if __name__ == "__main__":
    main()
