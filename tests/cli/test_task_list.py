"""What is kept of the zoo's tasks, and when it is made anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from costlib.cli import task_list
from costlib.cli.task_list import list_tasks
from costlib.hardware import Hardware
from costlib.remote.address import CACHE_VARIABLE, TASK_LISTS
from costlib.remote.cache import clear_cache
from costlib.workloads import extract_tasks

NETWORK = "bert_tiny@s16"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / TASK_LISTS


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sources whose lists are made, not read, from now on."""
    sources: list[str] = []

    def noting(source: str, *_: object) -> list[dict[str, Any]]:
        sources.append(source)
        return [{"workload_id": "a"}]

    monkeypatch.setattr(task_list, "_extracted", noting)
    return sources


def test_a_list_is_the_same_when_it_is_read(cache: Path, hardware: Hardware) -> None:
    first = list_tasks(NETWORK, hardware)
    assert len(list(cache.iterdir())) == 1
    again = list_tasks(NETWORK, hardware)
    expected = [task.workload_id for task in extract_tasks(NETWORK, hardware)]
    for found in (first, again):
        assert [task["workload_id"] for task in found] == expected
    assert [(t["title"], t["weight"]) for t in first] == [(t["title"], t["weight"]) for t in again]


@pytest.mark.usefixtures("cache")
def test_each_network_and_hardware_has_its_own(hardware: Hardware, made: list[str]) -> None:
    for _ in range(2):
        list_tasks(NETWORK, hardware)
        list_tasks("bert_tiny", hardware)
    assert made == [NETWORK, "bert_tiny"]
    assert hardware.num_cores != 1
    list_tasks(NETWORK, Hardware.local(num_cores=1))
    list_tasks(NETWORK, hardware, "given")
    assert len(made) == 4


@pytest.mark.usefixtures("cache")
def test_other_code_makes_another_list(
    hardware: Hardware, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_tasks(NETWORK, hardware)
    (tmp_path / "changed.py").touch()
    monkeypatch.setattr("costlib.__file__", str(tmp_path / "__init__.py"))
    list_tasks(NETWORK, hardware)
    assert made == [NETWORK] * 2


def test_what_is_damaged_or_cleared_is_made_again(
    cache: Path, hardware: Hardware, made: list[str]
) -> None:
    list_tasks(NETWORK, hardware)
    (file,) = cache.iterdir()
    file.write_text('[{"workl')
    assert list_tasks(NETWORK, hardware) == list_tasks(NETWORK, hardware)
    assert len(made) == 2
    clear_cache()
    assert not cache.exists()
    list_tasks(NETWORK, hardware)
    assert len(made) == 3


def test_files_and_operators_are_not_kept(
    cache: Path, hardware: Hardware, made: list[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert_tiny").touch()
    for source in ("matmul 8 8 8", "net.onnx", "bert_tiny"):
        list_tasks(source, hardware)
    assert len(made) == 3
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_does_no_harm(
    cache: Path, hardware: Hardware, made: list[str]
) -> None:
    cache.parent.write_text("a file where the folder would be")
    assert list_tasks(NETWORK, hardware) == [{"workload_id": "a"}]
    assert made == [NETWORK]
