from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl
import pytest

from costlib.collecting.mutations import record_mutations
from costlib.data.dataset import Dataset
from costlib.hardware import Hardware
from costlib.hub import Bundle


@pytest.fixture
def collected(measured_dataset: Dataset, tmp_path: Path) -> Dataset:
    return Dataset.open(shutil.copytree(measured_dataset.path, tmp_path / "copy"))


def test_parents_are_changed_in_every_direction(
    collected: Dataset, hardware: Hardware, bundle: Bundle
) -> None:
    seen: list[tuple[int, int]] = []
    done = record_mutations(
        collected,
        hardware,
        bundle,
        parents=12,
        on_progress=lambda done, total: seen.append((done, total)),
    )
    table = collected.scan("mutations").collect()
    assert done == table["parent_id"].n_unique() == 12
    assert seen[-1] == (12, 12)
    assert set(table["model"]) == {bundle.fingerprint}
    assert table["parent_score"].is_finite().all()
    programs = collected.scan().collect()
    assert set(table["parent_id"]) <= set(programs["program_id"])
    per_parent = table.group_by("parent_id").agg(pl.col("direction").n_unique())
    assert per_parent["direction"].min() >= 2


def test_measured_children_keep_their_direction(
    collected: Dataset, hardware: Hardware, bundle: Bundle
) -> None:
    record_mutations(collected, hardware, bundle, parents=60)
    children = collected.scan().filter(pl.col("parent_id").is_not_null()).collect()
    table = collected.scan("mutations").collect()
    keys = ["parent_id", "program_id", "direction"]
    found = children.join(table, on=keys, how="semi")
    assert len(found) == len(children) > 0


def test_going_on_adds_what_is_missing(
    collected: Dataset, hardware: Hardware, bundle: Bundle
) -> None:
    record_mutations(collected, hardware, bundle, parents=5)
    first = collected.scan("mutations").collect()
    assert record_mutations(collected, hardware, bundle, parents=9) == 9
    both = collected.scan("mutations").collect()
    assert both["parent_id"].n_unique() == 9
    assert len(first.join(both, on=["parent_id", "program_id", "direction"], how="semi")) == len(
        first
    )
    assert both.select("parent_id", "direction", "program_id").is_unique().all()
