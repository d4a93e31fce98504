"""Tuned networks against PyTorch, ``torch.compile``, ONNX Runtime and OpenVINO, in turns.

    python -m tools.benchmarks.engines --runs runs/engines                # everything
    python -m tools.benchmarks.engines --runs runs/engines --networks bert_tiny gpt2 \\
        --batches 1 --threads 2 --minutes 60

Every network of the zoo and those of :mod:`tools.benchmarks.outside`, with each batch and each
number of threads, is tuned in all layouts with the shipped bundle and then measured beside the
engines, at float32 and with the same threads. Each case is tuned in a folder of its own and in a
process of its own. After each one ``tools/results/engines.json`` is written. What is there of this
machine is not measured again, and a run that was cut off goes on. The engines are an extra:
``costlib[engines]``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import time
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path

from costlib.files import write_file
from costlib.hardware import Hardware
from costlib.workloads.zoo import list_networks
from tools.benchmarks.in_a_process import in_a_process
from tools.benchmarks.outside import OUTSIDE
from tools.evidence.beside_engines import ENGINES, BesideEngines, Case, summarise_engines
from tools.evidence.files import COMMITTED, RESULTS
from tools.evidence.protocol import QUICK

_PER_TASK = 16
_ALL = (*list_networks(), *OUTSIDE)

_VERSIONS = {package: version(package) for package in ("torch", "onnxruntime", "openvino")}


def main() -> None:
    """Measure the cases that are missing; begin none after so many minutes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=_ALL, default=_ALL, metavar="NETWORK")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--threads", nargs="+", type=int, default=[2, 1])
    parser.add_argument("--per-task", type=int, default=_PER_TASK, help="trials")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--runs", type=Path, required=True, help="where tuned networks are kept")
    parser.add_argument("--out", type=Path, default=RESULTS / "engines.json")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    cases = [
        (name, batch, threads, Hardware.local(num_cores=threads).hardware_id)
        for threads, batch, name in itertools.product(given.threads, given.batches, given.networks)
    ]
    rows = _begun(given.out, cases)
    for name, batch, threads, hardware_id in cases:
        if (name, batch, threads, hardware_id) in {row.case for row in rows}:
            continue
        if time.monotonic() > end:
            return
        arguments = (name, str(batch), str(threads), str(given.per_task), str(given.runs.resolve()))
        try:
            found = in_a_process("tools.benchmarks.engine_case", *arguments)
        except subprocess.CalledProcessError as error:  # Its last words are on stderr.
            print(name, batch, threads, f"ended with {error.returncode}", flush=True)
            continue
        rows.append(BesideEngines.model_validate(found))
        content = {"versions": _VERSIONS, **summarise_engines(rows)}
        write_file(given.out, (json.dumps(content, indent=1) + "\n").encode())
        print(_line(rows[-1]), flush=True)


def _begun(file: Path, cases: Collection[Case]) -> list[BesideEngines]:
    """Return the rows to begin with.

    A full run of the evidence keeps those that are committed of cases which it does not measure.
    """
    if not file.exists() and file.parent != COMMITTED and file.parent == RESULTS and not QUICK:
        return [row for row in read_rows(COMMITTED / file.name) if row.case not in cases]
    return read_rows(file)


def read_rows(file: Path) -> list[BesideEngines]:
    """Return what a result file holds; nothing if it is not there."""
    content = json.loads(file.read_text()) if file.exists() else {"networks": []}
    return [BesideEngines.model_validate(row) for row in content["networks"]]


def _line(row: BesideEngines) -> str:
    ratios = {title: row.ratio(engine) for engine, title in ENGINES.items()}
    words = [f"{title} {ratio:.2f}x" for title, ratio in ratios.items() if ratio is not None]
    ours = "failed" if row.costlib_s is None else f"{1e3 * row.costlib_s:.3f} ms"
    problems = [f"{engine}: {problem}" for engine, problem in row.problems.items()]
    return f"{row.name} batch {row.batch}, {row.threads} threads: {ours}; " + "; ".join(
        [", ".join(words), *problems]
    )


if __name__ == "__main__":
    main()
