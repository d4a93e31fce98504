"""Ranking in fewer bits: which programs are in which precision, and what is compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.models.gbdt import GbdtConfig
from costlib.training.batches import TrainingData, assemble
from tools.benchmarks import precision_ranking
from tools.benchmarks.precision_ranking import compared, kinds_of


def in_types(data: TrainingData, **values: float) -> TrainingData:
    """The same programs, as if their operands had other types."""
    context = data.batch.context.copy()
    for name, value in values.items():
        context[:, data.batch.names.index(f"task.{name}")] = value
    return replace(data, batch=replace(data.batch, context=context))


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        ({}, "float32"),
        ({"input_bits": 16, "weight_bits": 16, "weight_float": 1}, "bfloat16"),
        ({"weight_bits": 16, "weight_float": 1}, "bfloat16"),
        ({"input_bits": 8, "input_float": 0, "weight_bits": 8, "weight_float": 0}, "int8"),
        ({"weight_bits": 8, "weight_float": 0}, "weights in 8 or 4 bits"),
    ],
)
def test_precisions_are_told_from_features(
    measured_dataset: Dataset, types: dict[str, float], kind: str
) -> None:
    found = kinds_of(in_types(assemble(measured_dataset), **types))
    assert list(found) == [kind]
    assert found[kind].all()


def test_what_is_compared(measured_dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_ranking, "PROGRAMS", (1, 10_000))
    monkeypatch.setattr(
        precision_ranking,
        "kinds_of",
        lambda data: {
            "bfloat16": np.ones(len(data.labels), bool),
            "int8": data.groups == 0,  # A task alone has nothing to learn from.
            "float32": data.groups == 1,
        },
    )
    config = GbdtConfig(num_trees=4, min_programs_per_leaf=2)
    found = compared(measured_dataset, measured_dataset, 0, config)
    assert found["few"] == ["1 programs", "10,000 programs"]
    assert list(found["to"]) == ["bfloat16"]
    assert found["to"]["bfloat16"]["tasks"] == found["float32"]["tasks"] == 3
    ways = found["to"]["bfloat16"]["ways"]
    assert set(ways) == {"float32", "scratch"}
    assert set(ways["float32"]) == {"zero-shot", "1 programs", "everything"}
    assert set(ways["scratch"]) == {"1 programs", "everything"}
