from __future__ import annotations

import json

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.features.task_encoder import TaskEncoder
from costlib.generator import language
from costlib.generator.imagined import Judge, Programs
from costlib.generator.sentences import write_down
from costlib.hub import Bundle
from costlib.space.program import Program, Sketch
from costlib.space.vectors import DecisionVectors


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
        sketches = {name: one.sketch.instructions for name, one in vectors.items()}
        encoder = TaskEncoder.of_row(workload, sketches, hardware)
        programs = [p for name, drawn in found.items() for p in vectors[name].decode(drawn)]
        return teacher.predict(encoder.schedules(programs))

    judge = Judge(workload, hardware, vectors, teacher)
    rng = np.random.default_rng(0)
    drawn = {name: one.random(16, rng) for name, one in vectors.items()}
    measured = {
        name: Programs(rows, 1e-3 * np.exp(-0.5 * scores({name: rows})))
        for name, rows in drawn.items()
    }

    def imagined(seed: int, good: int, random: int) -> dict[str, Programs]:
        rng = np.random.default_rng(seed)
        found, slope = judge.imagine(measured, good, random, rng)
        assert slope == pytest.approx(-0.5)
        return found

    def scores_of(found: dict[str, Programs]) -> np.ndarray:
        return scores({name: programs.vectors for name, programs in found.items()})

    good, random = imagined(0, count, 0), imagined(1, 0, 64)
    for name in vectors:
        assert 1 <= len(good[name].vectors) <= count
        assert len(random[name].vectors) == 64
        typical = np.quantile(scores({name: random[name].vectors}), 0.9)
        assert scores({name: good[name].vectors}).min() >= typical
    for found in (good, random):
        expected = np.concatenate([programs.latency_s for programs in found.values()])
        np.testing.assert_allclose(expected, 1e-3 * np.exp(-0.5 * scores_of(found)), rtol=1e-6)
    again = imagined(0, count, 0)
    for name, programs in good.items():
        np.testing.assert_array_equal(programs.vectors, again[name].vectors)


def test_they_are_written_down(measured_dataset: Dataset, bundle: Bundle) -> None:
    plain = write_down(measured_dataset)
    progress: list[tuple[int, int]] = []
    taught = write_down(
        measured_dataset,
        imagined_programs=4,
        random_programs=2,
        invented=0.5,
        teacher=bundle.draft,
        on_progress=lambda done, total: progress.append((done, total)),
    )
    known = measured_dataset.scan().collect()["workload_id"].n_unique()
    total = known + round(known / 2)
    assert progress == [(number, total) for number in range(1, total + 1)]
    assert len(taught.tokens) >= (4 + 2) * total
    of_best = [
        sum(int(tokens[1]) == language.quality_of(1.0) for tokens in found.tokens)
        for found in (plain, taught)
    ]
    assert of_best[0] >= known
    assert of_best[1] >= total
