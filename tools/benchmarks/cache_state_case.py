"""One case of :mod:`tools.benchmarks.cache_state`, in a process of its own.

python -m tools.benchmarks.cache_state_case NETWORK SEED THREADS TRIALS_PER_TASK RUNS
"""

from __future__ import annotations

import sys
from pathlib import Path

from costlib.frozen import Frozen
from costlib.hardware import Hardware, find_hardware
from costlib.measure.config import MeasureConfig
from costlib.tuning.config import TuneConfig
from costlib.tuning.networks import NetworkSet
from costlib.tuning.result import TuneResult
from costlib.tuning.session import RUN
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.workloads import Network, load_network
from tools.benchmarks.in_turns import Timed, timed


class Side(Timed):
    """A network tuned in one way.

    Attributes
    ----------
    tasks_s
        What its tasks add up to as they were measured while it was tuned.
    trials, measure_s
        Programs measured, and seconds of that.
    """

    tasks_s: float
    trials: int
    measure_s: float


class CacheStateCase(Frozen):
    """A network tuned with weights in the cache and from memory.

    Attributes
    ----------
    per_task
        Trials.
    weight_bytes, cache_bytes
        What the network's weights take, and the size of the last cache.
    warm, cold
        Without and with ``MeasureConfig.cold_weights``; ``None`` if there is no difference.
    problem
        Why there is none, in a line.
    """

    name: str
    seed: int
    threads: int
    hardware: str
    per_task: int
    weight_bytes: int
    cache_bytes: int
    warm: Side | None = None
    cold: Side | None = None
    problem: str | None = None

    @property
    def case(self) -> tuple[str, int, int, str]:
        """What tells it from others."""
        return self.name, self.seed, self.per_task, self.hardware

    @property
    def gain(self) -> float | None:
        """How many times as fast the network is with cold weights."""
        if self.warm is None or self.cold is None:
            return None
        return self.warm.network_s / self.cold.network_s


def measured(name: str, seed: int, threads: int, per_task: int, runs: Path) -> CacheStateCase:
    """Tune a network in both ways, or go on with that, and time both."""
    hardware = find_hardware("cpu", num_cores=threads)
    network = load_network(name)
    configs = {way: MeasureConfig(cold_weights=way == "cold") for way in ("warm", "cold")}
    networks = NetworkSet.load([network], hardware)
    case = CacheStateCase(
        name=name,
        seed=seed,
        threads=threads,
        hardware=hardware.hardware_id,
        per_task=per_task,
        weight_bytes=int(networks.weight_bytes[0]),
        cache_bytes=hardware.cache_bytes[-1] if hardware.cache_bytes else 0,
    )
    if not networks.as_called(hardware, configs["cold"]).has_cold_weights:
        return case.model_copy(update={"problem": "its weights fit into the last cache"})
    trials = per_task * len(networks.tasks)
    results = {}
    for way, config in configs.items():
        folder = runs / f"{name.replace(' ', '-')}-s{seed}-t{threads}-{way}"
        results[way] = _tuned(network, folder, trials, hardware, seed, config)
    return case.model_copy(update=_timed(results, hardware))


def _tuned(
    network: Network,
    folder: Path,
    trials: int,
    hardware: Hardware,
    seed: int,
    config: MeasureConfig,
) -> TuneResult:
    return tune(
        network,
        out=folder,
        trials=trials,
        hardware=hardware,
        seed=seed,
        resume=any((folder / name).exists() for name in (RUN, TRIALS)),
        config=TuneConfig(measure=config),
    )


def _timed(results: dict[str, TuneResult], hardware: Hardware) -> dict[str, Side]:
    """Let the compiled networks take turns."""
    libraries = {way: Path(result.networks[0].library) for way, result in results.items()}
    return {
        way: Side(
            **found.model_dump(),
            tasks_s=_tasks_s(results[way]),
            trials=results[way].trials,
            measure_s=results[way].measure_s,
        )
        for way, found in timed(libraries, hardware).items()
    }


def _tasks_s(result: TuneResult) -> float:
    """Add up the best latencies of a network's tasks."""
    taken_s = 0.0
    for task in result.tasks:
        known = [s for s in (task.latency_before_s, task.latency_after_s) if s is not None]
        taken_s += sum(task.calls.values()) * min(known, default=0.0)
    return taken_s


if __name__ == "__main__":
    _, name, seed, threads, per_task, runs = sys.argv
    found = measured(name, int(seed), int(threads), int(per_task), Path(runs))
    print(found.model_dump_json())
