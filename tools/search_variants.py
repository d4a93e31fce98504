"""Settings of the search against each other, on invented tasks: what to make a default.

    python tools/search_variants.py population=1024 survivors=3,epsilon=0.2 --tasks 12
    python tools/search_variants.py cold cold,draft=0     # without a bundle
    python tools/search_variants.py --summary             # tools/results/variants.json

No network of the benchmarks is looked at, so that nothing is tuned for them. Each task is a file in
``tools/results/variants/`` with every trial of all sides, which take turns (:mod:`search_arms`);
what is there is not measured again. *Present* is the search as it was on that day,
*cold* the same without a bundle, to which its variants are compared.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from bench_search import Version, raced
from scipy.stats import sem
from search_arms import Arm, ours
from search_summary import curve, overhead, seconds_of

from costlib.generator.invented import invented_tasks
from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.measure.measurer import Measurer
from costlib.search.config import SearchConfig
from costlib.space.design_space import DesignSpace

RESULTS = Path(__file__).parent / "results"
FOLDER = RESULTS / "variants"
PRESENT = "present"
COLD = "cold"
SEED = 3_000_000
"""Far from those of trainings; another one gives tasks on which nothing was chosen yet."""
FLOPS = (2e7, 1e9)
"""Smaller tasks are done too soon, larger ones take too long."""
COUNTS = (8, 16, 32, 64, 128, 200)


def main() -> None:
    """Measure the tasks that are missing, or summarise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variants", nargs="*", help="[cold,]field=value[,field=value]")
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--trials", type=int, default=COUNTS[-1])
    parser.add_argument("--seed", type=int, default=SEED, help="of the invented tasks")
    parser.add_argument("--bundle", default="cpu-gbdt")
    parser.add_argument("--summary", action="store_true")
    arguments = parser.parse_args()
    if arguments.summary:
        (RESULTS / "variants.json").write_text(json.dumps(summary(), indent=1) + "\n")
        return
    FOLDER.mkdir(exist_ok=True)
    hardware, bundle = Hardware.local(), load_pretrained(arguments.bundle)
    versions = {PRESENT: (bundle, SearchConfig())}
    versions |= {text: version_of(text, bundle) for text in arguments.variants}
    invented = invented_tasks(100 * arguments.tasks, hardware, (), arguments.seed)
    tasks = (t for t in invented if FLOPS[0] < t.flops < FLOPS[1] and DesignSpace(t).is_tunable)
    with Measurer(hardware, reference=bundle.canary(hardware.hardware_id)) as measurer:
        for seed, task in enumerate(islice(tasks, arguments.tasks)):
            file = FOLDER / f"{task.name}-{task.workload_id[:6]}.json"
            if file.exists():
                continue
            arms = [
                Arm(name, ours([task.times(1)], arguments.trials, seed, measurer, known, config))
                for name, (known, config) in versions.items()
            ]
            content = {"bundle": bundle.manifest.created, "hardware": hardware.hardware_id}
            content |= raced(arms, [task.times(1)], measurer)
            file.write_text(json.dumps(content) + "\n")
            print(file.stem, json.dumps(summary()), flush=True)


def version_of(text: str, bundle: Bundle) -> Version:
    """Read ``[cold,]field=value,field=value``."""
    parts = text.split(",")
    changes = dict(part.split("=", 1) for part in parts if part != COLD)
    return None if COLD in parts else bundle, SearchConfig.model_validate(changes)


def summary() -> dict[str, Any]:
    """Throughput of each variant relative to the present or to the cold search, by trials.

    ``error`` is the standard error of its logarithm.
    ``overhead_s``: seconds a trial beside building and running, its and those of the other.
    ``seconds``: all seconds a trial, relative to that.
    """
    ratios: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    overheads: dict[str, list[tuple[float, float]]] = defaultdict(list)
    elapsed: dict[str, list[float]] = defaultdict(list)
    for file in sorted(FOLDER.glob("*.json")):
        arms = json.loads(file.read_text())["arms"]
        curves = {name: curve(arm, np.ones(1)) for name, arm in arms.items()}
        overhead_s = {name: overhead(arm) for name, arm in arms.items()}
        seconds = {name: seconds_of(arm) for name, arm in arms.items()}
        for name, latency_s in curves.items():
            base = COLD if name.startswith(f"{COLD},") else PRESENT
            overheads[name].append((overhead_s[name], overhead_s[base]))
            elapsed[name].append(seconds[name] / seconds[base])
            for count in COUNTS:
                if count <= min(len(latency_s), len(curves[base])):
                    ratios[name][count].append(curves[base][count - 1] / latency_s[count - 1])
    return {
        name: {
            str(count): {
                "mean": round(float(np.exp(np.mean(np.log(found)))), 4),
                "error": round(float(sem(np.log(found))), 4) if len(found) > 1 else None,
                "range": [round(min(found), 3), round(max(found), 3)],
                "tasks": len(found),
            }
            for count, found in by_count.items()
        }
        | {"overhead_s": np.mean(overheads[name], axis=0).round(4).tolist()}
        | {"seconds": round(float(np.exp(np.mean(np.log(elapsed[name])))), 4)}
        for name, by_count in ratios.items()
        if name != PRESENT
    }


if __name__ == "__main__":
    main()
