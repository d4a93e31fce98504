"""From some machines to another: what some minutes of measuring on the new one are worth.

    python -m tools.benchmarks.transfer    # writes tools/results/transfer.json

Each machine of the dataset in turn is the new one. Models know the other machines, or only those of
another vendor, and then of the new one

- nothing: ``zero-shot``;
- what 1, 5 or 15 minutes of measuring bring: whole tasks, drawn at random, as many records as the
  machine's rate makes of the minutes. The model is fine-tuned on these tasks; how is chosen by
  cross-validation over them, as ``costlib adapt`` does;
- ``everything``: one model of all records.

``scratch`` is trained on the same records alone. All by cross-validation over the tasks of all
machines, nearly equal ones in the same fold: no model has seen a task that it ranks, on any
machine. The rate is that at which the dataset's own records were written, pauses left out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.splits import dealt, workload_keys
from costlib.models.gbdt import GbdtConfig
from costlib.training.batches import assemble
from tools.benchmarks.between_hardware import machines_of, vendor_of
from tools.benchmarks.known_before import judged, scored
from tools.evidence.files import ZOO, write_result

FOLDS = 3
MINUTES = (1, 5, 15)
CONFIG = GbdtConfig(num_trees=100, learning_rate=0.15)
"""An eighth of the shipped model's trees, three times as bold: there are many models to train."""

PAUSE_S = 60.0
"""Without a record for so long, nothing was measured meanwhile."""


def main() -> None:
    """Compare the ways and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = compared(Dataset.open(given.dataset), given.seed)
    write_result("transfer", found)
    print(json.dumps(found, indent=1))


def compared(dataset: Dataset, seed: int, config: GbdtConfig = CONFIG) -> dict[str, Any]:
    """Return the figures of each way on each machine."""
    machines = machines_of(dataset)
    data = {name: assemble(dataset, hardware=[name]) for name in machines}
    vendors = {name: vendor_of(hardware) for name, hardware in machines.items()}
    rates = {name: records_a_second(dataset, name) for name in machines}
    few = {name: {f"{m} min": 60 * rates[name] * m for m in MINUTES} for name in machines}
    sources = {name: _sources(name, vendors) for name in machines}
    folds = dealt(workload_keys(dataset.scan("workloads")), FOLDS, seed)
    scores = scored(data, sources, few, folds, seed, config)
    return {
        "dataset": dataset.path.name,
        "seed": seed,
        "folds": FOLDS,
        "model": {"num_trees": config.num_trees, "learning_rate": config.learning_rate},
        "pause_s": PAUSE_S,
        "to": {
            name: {
                "vendor": vendors[name],
                "programs": len(data[name].labels),
                "tasks": len(data[name].tasks),
                "records_a_second": round(rates[name], 3),
                "sources": sources[name],
                "ways": judged(scores[name], data[name]),
            }
            for name in machines
        },
    }


def records_a_second(dataset: Dataset, hardware_id: str) -> float:
    """Return how many records a second a machine brought while it was measured."""
    times = dataset.scan().filter(pl.col("hardware") == hardware_id).select("measured_at")
    written = times.collect()["measured_at"].sort()
    gaps = written.diff().drop_nulls().dt.total_milliseconds() / 1000
    measuring = float(gaps.filter(gaps < PAUSE_S).sum())
    return len(written) / measuring if measuring else float("inf")


def _sources(name: str, vendors: dict[str, str]) -> dict[str, list[str]]:
    """Return the machines that a model knows before, by what is left out; each choice once."""
    found = {
        "machine": [other for other in vendors if other != name],
        "vendor": [other for other in vendors if vendors[other] != vendors[name]],
    }
    if found["vendor"] == found["machine"]:
        del found["vendor"]
    return {left_out: others for left_out, others in found.items() if others}


if __name__ == "__main__":
    main()
