from __future__ import annotations

import shutil

import numpy as np
import pytest

from costlib.collecting.mutations import record_mutations
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.models.direction import DirectionConfig, DirectionModel
from costlib.space.directions import DIRECTIONS
from costlib.training.directions import (
    direction_data,
    evaluate_directions,
    stock_probabilities,
)


@pytest.fixture(scope="module")
def recorded(
    measured_dataset: Dataset,
    hardware: Hardware,
    bundle: Bundle,
    tmp_path_factory: pytest.TempPathFactory,
) -> Dataset:
    folder = tmp_path_factory.mktemp("directions") / "ds"
    dataset = Dataset.open(shutil.copytree(measured_dataset.path, folder))
    record_mutations(dataset, hardware, bundle, parents=60)
    return dataset


def test_gains_of_every_direction(recorded: Dataset, hardware: Hardware) -> None:
    data = direction_data(recorded, hardware.hardware_id)
    parents = recorded.scan("mutations").collect()["parent_id"].n_unique()
    assert data.gains.shape == data.measured.shape == (parents, len(DIRECTIONS))
    assert len(data.batch) == len(data.groups) == parents
    assert len(data.tasks) == 3
    assert not np.isnan(data.gains[data.measured]).any()
    assert 0 < data.measured.sum() < (~np.isnan(data.gains)).sum()


def test_a_measured_gain_is_the_log_of_the_speed_up(recorded: Dataset, hardware: Hardware) -> None:
    data = direction_data(recorded, hardware.hardware_id)
    latency_s = dict(recorded.scan().select("program_id", "latency_s").collect().iter_rows())
    families = recorded.scan("mutations").select("parent_id", "program_id").collect()
    expected = {
        round(float(np.log(latency_s[parent] / latency_s[child])), 9)
        for parent, child in families.iter_rows()
        if child in latency_s
    }
    assert {round(float(gain), 9) for gain in data.gains[data.measured]} <= expected


def test_metrics(recorded: Dataset, hardware: Hardware) -> None:
    data = direction_data(recorded, hardware.hardware_id)
    model = DirectionModel(DirectionConfig(num_trees=30, min_data_in_leaf=3))
    model.fit(data.batch, data.gains, data.groups)
    metrics = evaluate_directions(model, data)
    assert metrics.accuracy >= metrics.chance
    assert metrics.best_gain >= max(metrics.gain, metrics.stock_gain)
    assert 0 <= metrics.calibration_error <= 1


def test_stock_probabilities() -> None:
    allowed = np.zeros((2, len(DIRECTIONS)), bool)
    for name in ("tile_spatial", "tile_reduction", "unroll", "parallel", "compute_location"):
        allowed[0, DIRECTIONS.index(name)] = True
    allowed[1, DIRECTIONS.index("unroll")] = True
    stock = stock_probabilities(allowed)
    assert stock[0, :2] == pytest.approx([0.45, 0.45])
    assert stock[0, DIRECTIONS.index("unroll")] == pytest.approx(0.03)
    assert stock[1].max() == 1


def test_no_records(measured_dataset: Dataset, hardware: Hardware) -> None:
    with pytest.raises(DatasetError, match="no mutation records"):
        direction_data(measured_dataset, hardware.hardware_id)
