from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dataset_rows import CANARY, failed, hardware, measurement, workload

from costlib.data import coverage
from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.report.coverage import draw_coverage


@pytest.fixture
def covered(tmp_path: Path) -> Dataset:
    dataset = Dataset.create(tmp_path / "ds")
    dataset.add_hardware(hardware(), CANARY)
    dataset.append_workloads([workload("a"), workload("b", name="softmax")])
    rows = [
        measurement(i, "a", latency_s=latency_s, measured_at=datetime(2026, 1, 1, i, tzinfo=UTC))
        for i, latency_s in enumerate((0.004, 0.002, 0.003, 0.001))
    ]
    rows += [failed(9, workload_id="b"), measurement(5, "b", latency_s=0.5)]
    dataset.append_measurements(hardware().hardware_id, rows)
    return dataset


def test_operators(covered: Dataset) -> None:
    first, second = coverage.by_operator(covered).to_dicts()
    assert first == {
        "operator": "matmul + add",
        "tasks": 1,
        "programs": 4,
        "failed": 0,
        "best_s": 0.001,
        "worst_s": 0.001,
        "median_ratio": 2.5,
    }
    assert (second["operator"], second["failed"]) == ("softmax", 1)


def test_hardware_and_failures(covered: Dataset) -> None:
    (row,) = coverage.by_hardware(covered).to_dicts()
    assert (row["programs"], row["failed"], row["tasks"]) == (6, 1, 2)
    assert coverage.failures(covered).to_dicts() == [
        {"status": "build_error", "programs": 1, "error": "no"}
    ]


def test_best_so_far_and_spread(covered: Dataset) -> None:
    assert sorted(coverage.programs_per_task(covered)) == [2, 4]
    assert sorted(coverage.slowness(covered)) == [1, 1, 2, 3, 4]
    shares = coverage.best_so_far(covered)
    assert shares["programs"].to_list() == [1, 2, 3, 4]
    assert shares["mean"].to_list()[2:] == [0.5, 1.0]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture(covered: Dataset, tmp_path: Path, ending: str) -> None:
    picture = draw_coverage(covered, tmp_path / f"coverage.{ending}")
    content = picture.read_bytes()
    if ending == "png":
        assert content.startswith(b"\x89PNG")
    else:
        assert ET.fromstring(content).tag.endswith("svg")


def test_what_cannot_be_drawn(covered: Dataset, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"end it with \.png or \.svg"):
        draw_coverage(covered, tmp_path / "coverage.jpg")
    with pytest.raises(InputError, match="no measurements to draw"):
        draw_coverage(Dataset.create(tmp_path / "empty"), tmp_path / "coverage.png")
