"""Build and measure programs on an NVIDIA GPU, and say what worked.

    python tools/check_cuda.py OUT           # OUT becomes a dataset; takes about three minutes

Each part goes on where the one before it failed. First a few programs of each operator are
measured and their output is compared with the unscheduled program's on the CPU, then 32 random
programs of each are measured into the dataset.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import polars as pl
from measure_programs import OPERATORS, heaviest_task, random_candidates

from costlib.data.collect import collect
from costlib.data.dataset import Dataset
from costlib.data.plan import Mix
from costlib.errors import CostlibError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.schema import Status
from costlib.tvm_compat import tvm
from costlib.tvm_compat.cuda import find_compiler
from costlib.workloads import Task

CHECKED_OPERATORS = tuple(OPERATORS[i] for i in (0, 3, 5, 8))
CHECKED_PROGRAMS = 2
PROGRAMS = 32
MAX_SECS = 150


def main() -> int:
    """Run all parts; the exit code says whether anything was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="the dataset's folder")
    out = parser.parse_args().out
    try:
        hardware = Hardware.local_cuda()
        print(f"TVM {tvm.__version__}, compiler {find_compiler()}")
    except CostlibError as error:
        print(error)
        return error.exit_code
    print(hardware.model_dump_json(indent=2), f"\nid {hardware.hardware_id}", flush=True)

    tasks = [heaviest_task(operator, hardware) for operator in CHECKED_OPERATORS]
    for part in (_check_outputs, _collect):
        start = time.monotonic()
        print(f"\n{part.__name__.strip('_')}", flush=True)
        try:
            part(tasks, hardware, out)
        except Exception:
            traceback.print_exc(file=sys.stdout)
        print(f"took {time.monotonic() - start:.0f} s", flush=True)
    try:
        return 0 if _summarize(out) else 1
    except CostlibError as error:
        print(error)
        return 1


def _check_outputs(tasks: list[Task], hardware: Hardware, _: Path) -> None:
    """Compare programs' output with the unscheduled program's, on the CPU."""
    config = MeasureConfig(check_output=True, run_timeout_secs=30, build_timeout_secs=60)
    with Measurer(hardware, config) as measurer:
        print(f"canaries' reference: {measurer.reference}")
        for operator, task in zip(CHECKED_OPERATORS, tasks, strict=True):
            drawn = random_candidates(task, CHECKED_PROGRAMS, seed=1)
            for m in measurer.measure(task, drawn):
                latency = "" if m.latency_s is None else f"{m.latency_s * 1e6:.1f} us"
                print(f"{operator}: {m.status} {latency} {m.error or ''}", flush=True)


def _collect(tasks: list[Task], hardware: Hardware, out: Path) -> None:
    """Measure random programs into the dataset."""
    collect(
        tasks,
        out,
        programs_per_task=PROGRAMS,
        hardware=hardware,
        mix=Mix(evolved=0, mutated=0),
        config=MeasureConfig(build_timeout_secs=60),
        minutes=MAX_SECS / 60,
        on_progress=lambda p: print(f"{p.done}/{p.total} {p.task}", flush=True),
    )


def _summarize(out: Path) -> int:
    """Print what the dataset holds; return how many programs were measured."""
    dataset = Dataset.open(out)
    names = dataset.scan("workloads").select("workload_id", "name", "flops")
    records = dataset.scan().join(names, on="workload_id").collect()
    print(f"\n{records.height} programs: {dict(Counter(records['status']))}")
    for message, count in Counter(records["error"].drop_nulls()).most_common(10):
        print(f"  {count} x {message}")
    fine = records.filter(pl.col("status") == str(Status.OK))
    for (name,), group in fine.group_by("name", maintain_order=True):
        best_s, flops = group["latency_s"].min(), group["flops"].first()
        spread = group["canary_compute"].list.min()
        print(
            f"{name}: {group.height} ok, best {best_s * 1e6:.1f} us, "
            f"{flops / best_s / 1e9:.0f} GFLOP/s, raced {group['raced'].sum()}, "
            f"compute canary {spread.min() * 1e6:.0f} to {spread.max() * 1e6:.0f} us"
        )
    return fine.height


if __name__ == "__main__":
    sys.exit(main())
