"""One case of :mod:`tools.benchmarks.engines`, in a process of its own.

python -m tools.benchmarks.engine_case NETWORK BATCH THREADS TRIALS_PER_TASK RUNS
"""

from __future__ import annotations

import sys
from pathlib import Path

from costlib.errors import DifferentNetworkError, UnsupportedModelError
from costlib.hardware import find_hardware
from costlib.tuning.config import TuneConfig
from costlib.tuning.profile import RunProfile, profile_run, read_profile
from costlib.tuning.session import RUN
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.workloads import extract_tasks
from tools.benchmarks.outside import load_any
from tools.evidence.beside_engines import AGAINST, OURS, BesideEngines

_PROFILES = 3
"""A network is profiled so often: a slow moment of the machine says nothing of where time goes."""


def measured(name: str, batch: int, threads: int, per_task: int, runs: Path) -> BesideEngines:
    """Tune a network, or go on with that, and compare it with all engines."""
    hardware = find_hardware("cpu", num_cores=threads)
    try:
        network = load_any(f"{name}@b{batch}")
        trials = per_task * len(extract_tasks(network, hardware))
        folder = runs / f"{name}-b{batch}-t{threads}"
        result = tune(
            network,
            out=folder,
            trials=trials,
            hardware=hardware,
            resume=any((folder / name).exists() for name in (RUN, TRIALS)),
            config=TuneConfig(layouts="all", against=AGAINST),
        )
    except (UnsupportedModelError, DifferentNetworkError) as error:
        return BesideEngines(
            name=name,
            batch=batch,
            threads=threads,
            hardware=hardware.hardware_id,
            trials=0,
            problems={OURS: str(error)},
        )
    return BesideEngines.of_run(name, batch, threads, result, calmest_profile(folder))


def calmest_profile(folder: Path) -> RunProfile:
    """Return that of several profiles of a run's network in which it took the least time."""
    first = read_profile(folder)
    if not first.networks:
        return first
    again = (profile_run(folder) for _ in range(_PROFILES - 1))
    return min((first, *again), key=lambda profile: profile.networks[0].network_s)


if __name__ == "__main__":
    _, name, batch, threads, per_task, runs = sys.argv
    print(measured(name, int(batch), int(threads), int(per_task), Path(runs)).model_dump_json())
