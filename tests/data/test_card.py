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


def count_parts(dataset: Dataset, pattern: str) -> int:
    return len(list(dataset.path.glob(pattern)))


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
    assert all([file["split"] for file in c["data_files"]] == ["train"] for c in configs)
    found = {c["config_name"]: count_parts(dataset, c["data_files"][0]["path"]) for c in configs}
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


def test_held_out_tasks_are_a_split_and_mutations_a_section(dataset: Dataset) -> None:
    hardware_id = fill(dataset)
    text = write_card(dataset).read_text()
    assert "There is one split" in text
    assert "1 programs were changed in every direction" in text
    held_out = Dataset.create(dataset.path / "heldout")
    held_out.add_hardware(hardware(), CANARY)
    held_out.append_measurements(hardware_id, [measurement(i, "other") for i in range(3)])
    card = write_card(dataset)
    assert "| `test` | 1 | 3 |" in card.read_text()
    configs = front_matter(card)["configs"]
    assert isinstance(configs, list)
    files = {c["config_name"]: {f["split"]: f["path"] for f in c["data_files"]} for c in configs}
    for name in ("measurements", hardware_id):
        assert {s: count_parts(dataset, p) for s, p in files[name].items()} == {
            "train": 1,
            "test": 1,
        }
    assert list(files["workloads"]) == ["train"]
