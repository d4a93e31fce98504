"""How far a bundle's generator gets on tasks that it has never seen, by the model that taught it.

    python -m tools.benchmarks.generator_reach --bundle BUNDLE --tasks 60

Nothing is measured: for each of some invented tasks the model of schedules scores programs that are
drawn at random, written, and evolved under it. Reach is how far the mean of the written ones of a
sketch lies on the way from that of the random ones (0) to that of the evolved ones (1). Writes
``tools/results/generator_reach.json``.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from costlib.data.task_tables import workload_row
from costlib.generator.imagined import Judge
from costlib.generator.invented import invented_tasks
from costlib.generator.writer import Writer
from costlib.hardware import Hardware
from costlib.hub import load_pretrained
from costlib.hub.bundle import Bundle
from costlib.models.base import CostModel
from costlib.space.design_space import DesignSpace
from costlib.space.vectors import sketch_vectors
from costlib.workloads.task import Task
from tools.evidence.files import write_result

SEED = 1_000_000
"""Far from those of trainings."""
EACH = 32
_LEAST_ROOM = 0.1
"""Between the means of scores; sketches with less have nothing to be written well."""


def main() -> None:
    """Judge a bundle's generator."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bundle", default="cpu-gbdt")
    parser.add_argument("--tasks", type=int, default=60)
    arguments = parser.parse_args()
    hardware, bundle = Hardware.local(), load_pretrained(arguments.bundle)
    assert bundle.draft is not None
    rows: list[dict[str, Any]] = []
    for number, task in enumerate(invented_tasks(arguments.tasks, hardware, (), SEED)):
        reach = _reach(task, bundle, bundle.draft, hardware, number)
        if reach is not None:
            shapes = [shape for _, shape in task.arguments]
            rows.append({"task": task.name, "shapes": shapes, "reach": reach})
            print(task.name, shapes, reach, flush=True)
    reaches = np.array([row["reach"] for row in rows])
    names = sorted({row["task"] for row in rows})
    summary = {
        "bundle": bundle.manifest.created,
        "mean": round(float(reaches.mean()), 3),
        "median": round(float(np.median(reaches)), 3),
        "by_name": {
            name: round(float(np.mean([r["reach"] for r in rows if r["task"] == name])), 3)
            for name in names
        },
        "tasks": rows,
    }
    write_result("generator_reach", summary)


def _reach(
    task: Task, bundle: Bundle, teacher: CostModel, hardware: Hardware, seed: int
) -> float | None:
    rng = np.random.default_rng(seed)
    vectors = sketch_vectors(DesignSpace(task), seed)
    if not vectors:
        return None
    writer = Writer(bundle.require_generator(), task, hardware, vectors)
    judge = Judge(workload_row(task), hardware, vectors, teacher)
    reaches = []
    for name, (_, scores) in judge.evolved(rng).items():
        random = float(judge.scores(name, vectors[name].random(EACH, rng)).mean())
        room = float(scores[:EACH].mean()) - random
        if room > _LEAST_ROOM:
            written = float(judge.scores(name, writer.write(name, EACH, rng)[0]).mean())
            reaches.append((written - random) / room)
    return round(float(np.mean(reaches)), 3) if reaches else None


if __name__ == "__main__":
    main()
