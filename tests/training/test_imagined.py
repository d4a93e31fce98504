from __future__ import annotations

import json

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.features import language
from costlib.features.context import task_features
from costlib.features.schedule import schedule_batch
from costlib.features.task_encoders import schedule_encoders
from costlib.hub import Bundle
from costlib.space.program import Program, Sketch
from costlib.space.vectors import DecisionVectors
from costlib.training.generator import write_down
from costlib.training.imagined import Programs, imagine
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

    rng = np.random.default_rng(0)
    drawn = {name: one.random(16, rng) for name, one in vectors.items()}
    measured = {
        name: Programs(rows, 1e-3 * np.exp(-0.5 * scores({name: rows})))
        for name, rows in drawn.items()
    }

    def imagined(seed: int, good: int, random: int) -> dict[str, Programs]:
        rng = np.random.default_rng(seed)
        return imagine(workload, hardware, vectors, measured, teacher, good, random, rng)

    def scores_of(found: dict[str, Programs]) -> np.ndarray:
        return scores({name: programs.vectors for name, programs in found.items()})

    good = imagined(0, count, 0)
    assert sum(len(programs.vectors) for programs in good.values()) >= count
    random = imagined(1, 0, 64)
    assert all(len(programs.vectors) == 64 for programs in random.values())
    assert scores_of(good).min() >= np.quantile(scores_of(random), 0.9)
    for found in (good, random):
        expected = np.concatenate([programs.latency_s for programs in found.values()])
        np.testing.assert_allclose(expected, 1e-3 * np.exp(-0.5 * scores_of(found)), rtol=1e-6)
    again = imagined(0, count, 0)
    for name, programs in good.items():
        np.testing.assert_array_equal(programs.vectors, again[name].vectors)


def test_they_are_written_down(measured_dataset: Dataset, bundle: Bundle) -> None:
    plain = write_down(measured_dataset)
    taught = write_down(
        measured_dataset, imagined_programs=4, random_programs=2, teacher=bundle.draft
    )
    assert sum(taught.measured) == len(plain.tokens) == sum(plain.measured)
    tasks = measured_dataset.scan().collect()["workload_id"].n_unique()
    assert len(taught.tokens) >= len(plain.tokens) + (4 + 2) * tasks
    qualities = np.array([tokens[1] for tokens in taught.tokens])
    measured = np.array(taught.measured)
    best = language.quality_of(1.0)
    assert best in qualities[~measured]
    assert (qualities[measured] == best).sum() <= sum(tokens[1] == best for tokens in plain.tokens)
