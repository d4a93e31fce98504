from __future__ import annotations

import json

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.features.context import task_features
from costlib.features.schedule import schedule_batch
from costlib.features.task_encoders import schedule_encoders
from costlib.hub import Bundle
from costlib.space.program import Program, Sketch
from costlib.space.vectors import DecisionVectors
from costlib.training.generator import write_down
from costlib.training.imagined import imagine
from costlib.tvm_compat.api import module_from_json


@pytest.mark.parametrize("count", [1, 12])
def test_imagined_programs_are_good_by_the_model(
    measured_dataset: Dataset, bundle: Bundle, count: int
) -> None:
    workload = measured_dataset.scan("workloads").collect().row(0, named=True)
    rows = measured_dataset.scan().filter(workload_id=workload["workload_id"]).collect()
    texts = dict(
        measured_dataset.scan("sketches").select("sketch_id", "instructions").collect().iter_rows()
    )
    vectors = {}
    for (sketch_id,), group in rows.group_by("sketch_id", maintain_order=True):
        programs = [
            Program(workload["workload_id"], str(sketch_id), json.loads(text))
            for text in group["decisions"]
        ]
        vectors[str(sketch_id)] = DecisionVectors(Sketch.from_json(texts[sketch_id]), programs)
    (hardware,) = measured_dataset.hardware().values()
    teacher = bundle.draft
    assert teacher is not None

    def imagined(seed: int) -> dict[str, np.ndarray]:
        rng = np.random.default_rng(seed)
        return imagine(workload, hardware, vectors, teacher, count, rng)

    def scores(found: dict[str, np.ndarray]) -> np.ndarray:
        encoders = schedule_encoders(
            workload["name"],
            [argument["shape"] for argument in workload["arguments"]],
            module_from_json(workload["mod_json"]),
            {name: one.sketch.instructions for name, one in vectors.items()},
            hardware,
        )
        programs = [p for name, drawn in found.items() for p in vectors[name].decode(drawn)]
        return teacher.predict(
            schedule_batch(
                encoders,
                [program.sketch_id for program in programs],
                [program.decisions for program in programs],
                task_features(workload["flops"], hardware),
            )
        )

    good = imagined(0)
    assert sum(map(len, good.values())) >= count
    rng = np.random.default_rng(1)
    random = {name: one.random(64, rng) for name, one in vectors.items()}
    assert scores(good).min() >= np.quantile(scores(random), 0.9)
    again = imagined(0)
    for name, drawn in good.items():
        np.testing.assert_array_equal(drawn, again[name])


def test_they_are_written_down(measured_dataset: Dataset, bundle: Bundle) -> None:
    plain = write_down(measured_dataset)
    taught = write_down(measured_dataset, imagined_programs=4, teacher=bundle.draft)
    assert sum(taught.measured) == len(plain.tokens) == sum(plain.measured)
    tasks = measured_dataset.scan().collect()["workload_id"].n_unique()
    assert len(taught.tokens) >= len(plain.tokens) + 4 * tasks
