from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from dataset_rows import CANARY, failed, fill, hardware, measurement

from costlib.data.card import size_category, write_card
from costlib.data.dataset import Dataset
from costlib.schema import MEASUREMENTS


def front_matter(card: Path) -> dict[str, object]:
    _, matter, _ = card.read_text().split("---\n", 2)
    content = yaml.safe_load(matter)
    assert isinstance(content, dict)
    return content


def test_the_card_of_an_empty_dataset(dataset: Dataset) -> None:
    matter = front_matter(write_card(dataset))
    assert matter["license"] == "apache-2.0"
    assert matter["size_categories"] == ["n<1K"]
    assert "configs" not in matter


def test_the_front_matter_finds_the_parts_of_each_table(dataset: Dataset) -> None:
    hardware_id = fill(dataset, parts=2)
    other = hardware(7)
    dataset.add_hardware(other, CANARY)
    dataset.append_measurements(other.hardware_id, [measurement(1)])
    configs = front_matter(write_card(dataset))["configs"]
    assert isinstance(configs, list)
    found = {c["config_name"]: len(list(dataset.path.glob(c["data_files"]))) for c in configs}
    assert found == {
        "measurements": 3,
        "workloads": 1,
        "sketches": 1,
        "networks": 1,
        "mutations": 1,
        hardware_id: 2,
        other.hardware_id: 1,
    }
    assert [c["config_name"] for c in configs if c.get("default")] == ["measurements"]


def test_the_card_follows_the_data(dataset: Dataset) -> None:
    hardware_id = fill(dataset)
    card = write_card(dataset)
    assert card == dataset.path / "README.md"
    assert "| ok | 4 |" in card.read_text()
    dataset.append_measurements(hardware_id, [failed(100 + i) for i in range(1500)])
    text = write_card(dataset).read_text()
    assert "| build_error | 1500 |" in text
    assert "| measurements | 1,504 |" in text
    assert hardware_id in text
    assert "Test CPU" in text
    assert all(f"`{name}`" in text for name in MEASUREMENTS.names)
    assert front_matter(card)["size_categories"] == ["1K<n<10K"]
    assert list(dataset.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1000, "1K<n<10K"),
        (20_000, "10K<n<100K"),
        (10**7, "10M<n<100M"),
        (10**9, "n>1B"),
    ],
)
def test_size_category(rows: int, name: str) -> None:
    assert size_category(rows) == name
