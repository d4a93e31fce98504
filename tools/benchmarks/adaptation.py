"""What an adaptation to this machine brought, beside what a full collection brings.

    costlib adapt --minutes 15 --out ADAPTED          # from a bundle that does not know the machine
    python -m tools.benchmarks.adaptation ADAPTED --before cpu-gbdt --everything BUNDLE

*everything* is a bundle that was trained with all that the zoo holds of the machine. All are judged
on the tasks that the adaptation kept apart, which none of them has seen. Writes
``tools/results/adaptation.json``; the figures of other machines stay in it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from costlib.collecting.adapt import data_of
from costlib.collecting.adapted import adapted_of
from costlib.data.dataset import Dataset
from costlib.hub import load_pretrained
from costlib.training.batches import assemble
from tools.benchmarks.between_hardware import figures
from tools.evidence.files import ZOO, read_result, write_result


def main() -> None:
    """Judge the bundles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("adapted", type=Path, help="what costlib adapt wrote")
    parser.add_argument("--before", required=True, help="the bundle that it started from")
    parser.add_argument("--everything", required=True, help="one that knows the machine well")
    given = parser.parse_args()
    adapted = load_pretrained(str(given.adapted))
    how = adapted_of(adapted)
    if how is None:
        parser.error(f"{given.adapted} was not made by costlib adapt")
    dataset = Dataset.open(data_of(given.adapted))
    ids = set(dataset.scan().select("workload_id").unique().collect()["workload_id"])
    apart = ids - set(adapted.manifest.trained_on.trained)
    bundles = {
        "zero-shot": load_pretrained(given.before),
        f"{how.minutes:.0f} min": adapted,
        "everything": load_pretrained(given.everything),
    }
    for name, bundle in bundles.items():
        if seen := apart.intersection(bundle.manifest.trained_on.trained):
            parser.error(f"{name} was trained on {len(seen)} of the tasks that were kept apart")
    data = assemble(dataset, only=apart, view=adapted.model.view)
    (hardware_id,) = dataset.hardware()
    known = Dataset.open(ZOO).scan().filter(pl.col("hardware") == hardware_id)
    found = {
        "minutes": round(how.minutes, 1),
        "programs": how.programs,
        "tasks": how.tasks,
        "apart": len(apart),
        "zoo_programs": known.select(pl.len()).collect().item(),
        "ways": {n: figures(b.model.predict(data.batch), data) for n, b in bundles.items()},
    }
    write_result("adaptation", {"machines": _others() | {hardware_id: found}})
    print(found)


def _others() -> dict[str, object]:
    machines: dict[str, object] = read_result("adaptation").get("machines", {})
    return machines


if __name__ == "__main__":
    main()
