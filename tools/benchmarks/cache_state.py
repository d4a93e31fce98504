"""Networks tuned with weights in the cache and with weights from memory, timed in turns.

    python -m tools.benchmarks.cache_state bert_small gpt2 --runs runs/cache_state
    python -m tools.benchmarks.cache_state resnet_18 --runs runs/cache_state --seeds 0 1 2 \\
        --threads 1 2 --per-task 16 --minutes 60

Each case is tuned twice with the shipped bundle, the same seed and the same trials, and with
``MeasureConfig.cold_weights`` off and on; the two compiled networks then take turns. A network
whose weights fit into the last cache is left out: both would measure the same. Each case runs in a
process of its own, tuned networks lie in ``--runs``, and after each case
``tools/results/cache_state.json`` is written. What is there of this machine is not measured again,
and a run that was cut off goes on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.files import write_file
from costlib.hardware import Hardware
from tools.benchmarks.cache_state_case import CacheStateCase
from tools.benchmarks.in_a_process import in_a_process
from tools.evidence.files import RESULTS

_PER_TASK = 16


def main() -> None:
    """Measure the cases that are missing; begin none after so many minutes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+", metavar="NETWORK")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--threads", nargs="+", type=int, default=[2])
    parser.add_argument("--per-task", type=int, default=_PER_TASK, help="trials")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--runs", type=Path, required=True, help="where tuned networks are kept")
    parser.add_argument("--out", type=Path, default=RESULTS / "cache_state.json")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    rows = read_rows(given.out)
    for threads, seed, name in itertools.product(given.threads, given.seeds, given.networks):
        hardware_id = Hardware.local(num_cores=threads).hardware_id
        if (name, seed, given.per_task, hardware_id) in {row.case for row in rows}:
            continue
        if time.monotonic() > end:
            return
        arguments = (name, str(seed), str(threads), str(given.per_task), str(given.runs.resolve()))
        try:
            found = in_a_process("tools.benchmarks.cache_state_case", *arguments)
        except subprocess.CalledProcessError as error:  # Its last words are on stderr.
            print(name, seed, threads, f"ended with {error.returncode}", flush=True)
            continue
        rows.append(CacheStateCase.model_validate(found))
        write_file(given.out, (json.dumps(summarise(rows), indent=1) + "\n").encode())
        print(_line(rows[-1]), flush=True)


def summarise(rows: Sequence[CacheStateCase]) -> dict[str, Any]:
    """Return the cases, and by how much cold weights make networks faster, in geometric mean."""
    by_network: dict[str, list[float]] = {}
    for row in rows:
        if (gain := row.gain) is not None:
            by_network.setdefault(row.name, []).append(gain)
    means = {name: _mean(gains) for name, gains in by_network.items()}
    return {
        "cases": [row.model_dump(mode="json") for row in rows],
        "by_network": means,
        "geometric_mean": _mean(list(means.values())) if means else None,
    }


def read_rows(file: Path) -> list[CacheStateCase]:
    """Return what a result file holds; nothing if it is not there."""
    content = json.loads(file.read_text()) if file.exists() else {"cases": []}
    return [CacheStateCase.model_validate(row) for row in content["cases"]]


def _mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _line(row: CacheStateCase) -> str:
    begin = f"{row.name} seed {row.seed}, {row.threads} threads"
    if row.gain is None or row.warm is None or row.cold is None:
        return f"{begin}: {row.problem}"
    sides = "; ".join(
        f"{what} {1e3 * side.network_s:.3f} ms, its tasks {1e3 * side.tasks_s:.3f} ms"
        for what, side in (("warm", row.warm), ("cold", row.cold))
    )
    return f"{begin}: {sides}; {row.gain:.3f}x"


if __name__ == "__main__":
    main()
