"""What a user's earlier runs are worth: networks tuned one after the other, with a memory.

    python -m tools.benchmarks.memory --work DIR

Networks from outside the zoo are tuned in a row, as ``costlib tune --memory`` does: whatever was
found in one is there for the next. Each is a race of the search with that memory against the same
search without (:mod:`tools.benchmarks.race`), both with the shipped bundle, of which no task is one
of theirs. Races are kept in ``tools/results/raw/memory``, what is remembered in ``--work``; what is
in both is not raced again. ``python -m tools.evidence.pack memory`` puts the races with those that
are committed.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

from costlib.files import replacing_folder
from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.search.strategy import Strategy
from costlib.space.design_space import DesignSpace
from costlib.tuning.budget import for_budget
from costlib.tuning.memory import Memory
from costlib.workloads import extract_tasks
from tools.benchmarks.cases import Case
from tools.benchmarks.outside import OUTSIDE, load_any
from tools.benchmarks.race import Arm
from tools.benchmarks.sides import ours
from tools.evidence.memory_summary import WITH, WITHOUT
from tools.evidence.protocol import MEMORY_TRIALS
from tools.evidence.races import Race
from tools.evidence.stores import MEMORY

NETWORKS = ("electra_small", "vit_small", "whisper_tiny_encoder", "albert_base", "gpt2")


def main() -> None:
    """Race the networks that are missing, in their order."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=OUTSIDE, default=NETWORKS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--bundle", default="cpu-gbdt")
    parser.add_argument("--work", type=Path, required=True, help="where memories are kept")
    given = parser.parse_args()
    hardware, bundle = Hardware.local(), load_pretrained(given.bundle)
    with Measurer(hardware, reference=bundle.canary(hardware.hardware_id)) as measurer:
        for seed in given.seeds:
            earlier: Path | None = None
            for number, network in enumerate(given.networks, 1):
                name = f"{number}-{network}"
                later = given.work / f"seed{seed}" / name
                if Race.name_of("memory", name, seed) not in MEMORY or not later.exists():
                    MEMORY.save(_raced(name, network, seed, earlier, later, measurer, bundle))
                    print(name, "seed", seed, flush=True)
                earlier = later


def _raced(
    name: str,
    network: str,
    seed: int,
    earlier: Path | None,
    later: Path,
    measurer: Measurer,
    bundle: Bundle,
) -> Race:
    """Race at a network, and keep what is remembered afterwards."""
    hardware, found = measurer.hardware, list[Strategy]()
    all_tasks = extract_tasks(load_any(f"{network}@b1"), hardware)
    tasks = [task for task in all_tasks if DesignSpace(task).is_tunable]
    bank = None if earlier is None else Memory(earlier, hardware.family).bank()

    def arms(measurer: Measurer, bundle: Bundle) -> Sequence[Arm]:
        trials = len(tasks) * MEMORY_TRIALS
        config = for_budget(SearchConfig(), trials, len(tasks))
        settings = trials, seed, measurer, bundle, config
        return (
            ours(WITH, tasks, *settings, memory=bank, keep=found.extend),
            ours(WITHOUT, tasks, *settings),
        )

    race = Case("memory", name, seed, tasks, arms).race(measurer, bundle)
    with replacing_folder(later) as folder:
        if earlier is not None:
            shutil.copytree(earlier, folder, dirs_exist_ok=True)
        Memory(folder, hardware.family).add(found, hardware)
    return race


if __name__ == "__main__":
    main()
