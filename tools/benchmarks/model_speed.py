"""How fast models score and train, beside MetaSchedule's and TenSet's.

    python -m tools.benchmarks.model_speed   # writes tools/results/model_speed.json

Scoring: candidates of the heaviest task of a held-out network a second, from trace to score, by
stock ``XGBModel.predict`` (its candidates replayed and postprocessed by the same code as ours), by
the bundle's exact model, and by its model of schedules, from programs and from vectors of
decisions. The sides take turns.

Training: each model in a process of its own on the same records of ``datasets/zoo``: programs a
second and the peak of memory above what the data itself takes. Needs ``pip install -e '.[bench]'``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from costlib.data.dataset import Dataset
from costlib.training.batches import TrainingData, assemble
from costlib.training.protocol import most_measured_hardware
from tools.benchmarks.in_a_process import in_a_process, peak_mib
from tools.evidence.files import ZOO, write_result

NETWORK = "resnet_50"
CANDIDATES = 256
VECTORS = 16_384
ROUNDS = 5
TRAINERS = ("gbdt", "gbdt-statements", "mlp", "MetaSchedule XGBModel", "TenSet GBDT", "TenSet MLP")


def main() -> None:
    """Run both parts and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", choices=TRAINERS, help=argparse.SUPPRESS)
    parser.add_argument("--programs", type=int, nargs="+", default=[2_500, 10_000])
    parser.add_argument("--dataset", type=Path, default=ZOO)
    arguments = parser.parse_args()
    if arguments.trainer:
        dataset = Dataset.open(arguments.dataset)
        print(json.dumps(train_here(arguments.trainer, dataset, arguments.programs[0])))
        return
    result: dict[str, Any] = {"scoring": scoring(arguments.dataset), "training": {}}
    print(json.dumps(result["scoring"], indent=1), flush=True)
    for programs in arguments.programs:
        row = result["training"][f"{programs} programs"] = {}
        for trainer in TRAINERS:
            options = {"trainer": trainer, "programs": programs, "dataset": arguments.dataset}
            row[trainer] = in_a_process(
                "tools.benchmarks.model_speed",
                *(text for name, value in options.items() for text in (f"--{name}", str(value))),
            )
            print(programs, trainer, row[trainer], flush=True)
            write_result("model_speed", result)


def scoring(dataset: Path) -> dict[str, Any]:
    """Time all ways to score, several rounds in turns; medians."""
    from costlib.features.task_encoder import TaskEncoder
    from costlib.hardware import Hardware
    from costlib.hub import load_pretrained
    from costlib.sketch_pool import SketchPool
    from costlib.space.design_space import DesignSpace
    from costlib.space.vectors import DecisionVectors
    from costlib.tvm_compat import ms
    from costlib.workloads import extract_tasks

    hardware = Hardware.local()
    bundle = load_pretrained()
    exact, draft = bundle.statement_model(), bundle.draft
    assert draft is not None, "the shipped bundle has a model of schedules"
    task = extract_tasks(NETWORK, hardware)[0]
    space = DesignSpace(task)
    drawn = itertools.islice((p for p, s in space.sample(0) if s is not None), CANDIDATES)
    programs = list(drawn)
    context = ms.TuneContext(
        mod=task.mod,
        target=task.tvm_target(),
        space_generator="post-order-apply",
        search_strategy="evolutionary",
        num_threads=hardware.num_cores,
    )
    stock = ms.cost_model.XGBModel(num_warmup_samples=0)
    records = _records(Dataset.open(dataset), 2_500)
    stock._inst._train(
        np.split(records.batch.stores, records.batch.offsets[1:-1]),
        records.labels.astype("float32"),
    )
    encoder = TaskEncoder.of_space(space, hardware)
    largest = max(space.sketches, key=lambda s: sum(p.sketch_id == s.sketch_id for p in programs))
    shown = [program for program in programs if program.sketch_id == largest.sketch_id]
    decisions, of_sketch = DecisionVectors(largest, shown), encoder.sketches[largest.sketch_id]
    pool = SketchPool(decisions, of_sketch, encoder.context)
    vectors = pool.vectors.random(VECTORS, np.random.default_rng(0))

    def lowered() -> list[Any]:
        return [space.lower(program) for program in programs]

    def by_stock(schedules: list[Any]) -> None:
        stock.predict(context, [ms.MeasureCandidate(s, []) for s in schedules])

    def by_exact(schedules: list[Any]) -> None:
        exact.predict(encoder.lowered(context, schedules))

    def by_draft() -> None:
        draft.predict(encoder.schedules(programs))

    ready = lowered()
    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "XGBModel.predict": (lambda: by_stock(ready), CANDIDATES),
        "XGBModel.predict, from traces": (lambda: by_stock(lowered()), CANDIDATES),
        "exact model": (lambda: by_exact(ready), CANDIDATES),
        "exact model, from traces": (lambda: by_exact(lowered()), CANDIDATES),
        "model of schedules, from programs": (by_draft, CANDIDATES),
        "model of schedules, from vectors": (lambda: draft.predict(pool.encode(vectors)), VECTORS),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (way, _) in ways.items():
            started = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - started)
    rates = {n: round(count / float(np.median(seconds[n]))) for n, (_, count) in ways.items()}
    base = rates["XGBModel.predict, from traces"]
    return {
        "task": f"{NETWORK}: {task.name}",
        "hardware": hardware.hardware_id,
        "programs_per_second": rates,
        "relative_to_stock_from_traces": {n: round(rate / base, 2) for n, rate in rates.items()},
    }


def train_here(trainer: str, dataset: Dataset, programs: int) -> dict[str, Any]:
    """Train in this process."""
    from tools.benchmarks.leaderboard import MODELS

    data = _records(dataset, programs)
    model = MODELS[trainer]()
    before = peak_mib()
    started = time.perf_counter()
    model.fit(data.batch, data.labels, data.groups, seed=0)
    seconds = time.perf_counter() - started
    return {
        "programs": len(data.labels),
        "seconds": round(seconds, 1),
        "programs_per_second": round(len(data.labels) / seconds),
        "peak_mib_above_data": peak_mib() - before,
    }


def _records(dataset: Dataset, programs: int) -> TrainingData:
    """Return the first tasks of a dataset that have so many programs together."""
    hardware = most_measured_hardware(dataset)
    ids = sorted(dataset.scan("workloads").select("workload_id").collect()["workload_id"])
    counts = dict(
        dataset.scan()
        .filter(status="ok", hardware=hardware)
        .group_by("workload_id")
        .len()
        .collect()
        .iter_rows()
    )
    total = np.cumsum([counts.get(workload_id, 0) for workload_id in ids])
    chosen = ids[: int(np.searchsorted(total, programs)) + 1]
    return assemble(dataset, only=chosen, hardware=[hardware])


if __name__ == "__main__":
    main()
