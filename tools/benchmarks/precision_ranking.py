"""From float32 to fewer bits: what some programs in a precision teach a model that knows float32.

    python -m tools.benchmarks.precision_ranking    # writes tools/results/precision_ranking.json

A model knows the float32 programs of ``datasets/zoo``, of the machine that has most programs in
fewer bits, and then of a precision nothing, 100 to 1,000 programs of ``datasets/precisions``, or
everything; see :mod:`tools.benchmarks.known_before`. Cross-validation over the tasks.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import Bools
from costlib.data.dataset import Dataset
from costlib.data.splits import dealt, workload_keys
from costlib.models.gbdt import GbdtConfig
from costlib.training.batches import TrainingData, assemble
from tools.benchmarks.between_hardware import machines_of
from tools.benchmarks.known_before import judged, scored
from tools.benchmarks.transfer import CONFIG, FOLDS
from tools.evidence.files import FEWER_BITS, ZOO, write_result

_OPERANDS = ("input", "weight")
PROGRAMS = (100, 300, 1000)
FLOAT32 = "float32"


def main() -> None:
    """Compare what models know and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--float32", type=Path, default=ZOO)
    parser.add_argument("--dataset", type=Path, default=FEWER_BITS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = compared(Dataset.open(given.float32), Dataset.open(given.dataset), given.seed)
    write_result("precision_ranking", found)
    print(json.dumps(found, indent=1))


def compared(
    wide: Dataset, fewer: Dataset, seed: int, config: GbdtConfig = CONFIG
) -> dict[str, Any]:
    """Return the figures of each precision in ``fewer`` with tasks in more than one fold."""
    machine = next(iter(machines_of(fewer)))
    keys = [key for one in (wide, fewer) for key in workload_keys(one.scan("workloads"))]
    folds = dealt(keys, FOLDS, seed)
    rest = assemble(fewer, hardware=[machine])
    data = {FLOAT32: assemble(wide, hardware=[machine])}
    for kind, rows in kinds_of(rest).items():
        some = rest.rows(rows)
        if kind != FLOAT32 and len({folds[rest.tasks[g][0]] for g in np.unique(some.groups)}) > 1:
            data[kind] = some
    sources = {kind: _sources(kind, list(data)) for kind in data if kind != FLOAT32}
    few = {f"{programs:,} programs": float(programs) for programs in PROGRAMS}
    scores = scored(data, sources, dict.fromkeys(sources, few), folds, seed, config)
    return {
        "hardware": machine,
        "seed": seed,
        "folds": FOLDS,
        "model": {"num_trees": config.num_trees, "learning_rate": config.learning_rate},
        "few": list(few),
        "float32": _size(data[FLOAT32]),
        "to": {
            kind: {**_size(data[kind]), "ways": judged(scores[kind], data[kind])}
            for kind in sources
        },
    }


def kinds_of(data: TrainingData) -> dict[str, Bools]:
    """Return which programs compute in which precision, bool `n`; only those that there are."""
    column = {name: data.batch.context[:, i] for i, name in enumerate(data.batch.names)}
    bits = {name: column[f"task.{name}_bits"] for name in _OPERANDS}
    is_float = {name: column[f"task.{name}_float"] > 0 for name in _OPERANDS}
    codes = {name: (bits[name] == 8) & ~is_float[name] for name in _OPERANDS}
    found = {
        "bfloat16": np.any([(bits[name] == 16) & is_float[name] for name in _OPERANDS], axis=0),
        "int8": codes["input"],
        "weights in 8 or 4 bits": codes["weight"] & ~codes["input"],
    }
    found[FLOAT32] = ~np.any(list(found.values()), axis=0)
    return {kind: rows for kind, rows in found.items() if rows.any()}


def _sources(kind: str, all_of_them: list[str]) -> dict[str, list[str]]:
    """Return the sets that a model knows before, each choice once."""
    others = [other for other in all_of_them if other != kind]
    return {FLOAT32: [FLOAT32]} | ({"others": others} if others != [FLOAT32] else {})


def _size(data: TrainingData) -> dict[str, int]:
    return {"programs": len(data.labels), "tasks": len(np.unique(data.groups))}


if __name__ == "__main__":
    main()
