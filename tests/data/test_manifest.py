from __future__ import annotations

import json
from pathlib import Path

import pytest
from dataset_rows import CANARY, hardware

import costlib
from costlib.data.dataset import Dataset
from costlib.data.manifest import MANIFEST
from costlib.errors import DatasetError
from costlib.schema import SCHEMA_VERSION


def test_a_new_dataset_says_what_made_it(dataset: Dataset) -> None:
    info = Dataset.open(dataset.path).info
    assert info == dataset.info
    assert info.schema_version == SCHEMA_VERSION
    assert info.costlib_version == costlib.__version__
    assert info.created.endswith("+00:00")


@pytest.mark.parametrize(("version", "mend"), [(0, "collect again"), (99, "update costlib")])
def test_another_schema_version_is_refused(dataset: Dataset, version: int, mend: str) -> None:
    (dataset.path / MANIFEST).write_text(json.dumps({"schema_version": version, "new": "shape"}))
    for access in (Dataset.open, Dataset.create):
        with pytest.raises(DatasetError, match=f"schema version {version}.*{mend}") as caught:
            access(dataset.path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"{}",
        b"\xff\xfe",
        b'{"schema_version": "one"}',
        b'{"schema_version": 1}',
        b'{"schema_version": 1, "costlib_version": 2, "tvm_version": null, "created": ""}',
    ],
)
def test_a_damaged_manifest_is_named(dataset: Dataset, content: bytes) -> None:
    (dataset.path / MANIFEST).write_bytes(content)
    with pytest.raises(DatasetError, match=r"dataset\.json is damaged") as caught:
        Dataset.open(dataset.path)
    assert "\n" not in str(caught.value)


def test_no_dataset_there(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="there is no dataset"):
        Dataset.open(tmp_path / "nothing")
    with pytest.raises(DatasetError, match="is not a dataset"):
        Dataset.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DatasetError, match="is not a dataset"):
        Dataset.open(tmp_path / "file")
    (tmp_path / MANIFEST).mkdir()
    with pytest.raises(DatasetError, match="cannot be read"):
        Dataset.open(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b'{"hardware": {}, "canary": null}'])
def test_a_damaged_hardware_file_is_named(dataset: Dataset, content: bytes) -> None:
    machine = hardware()
    dataset.add_hardware(machine, CANARY)
    (dataset.path / "hardware" / f"{machine.hardware_id}.json").write_bytes(content)
    for read in (dataset.hardware, lambda: dataset.canary(machine.hardware_id)):
        with pytest.raises(DatasetError, match=rf"{machine.hardware_id}\.json is damaged"):
            read()
