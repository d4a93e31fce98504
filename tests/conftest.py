"""Programs, datasets and bundles that several test folders share: small, real, made once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from kept_server import KeptServer

from costlib.collecting.collect import collect
from costlib.data.dataset import Dataset
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.hub.train import train
from costlib.measure import measurer
from costlib.measure.config import MeasureConfig
from costlib.workloads import Task, extract_tasks

pytest.register_assert_rewrite("costlib.testing")

OPERATORS = ("matmul 32 32 32", "matmul 64 32 16", "softmax 32 32")
QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)


@pytest.fixture(autouse=True)
def metaschedule_forgets_its_loggers() -> Iterator[None]:
    """It keeps its log to itself; pytest listens there, and then it cannot be configured again."""
    yield
    logging.getLogger("tvm.s_tir.meta_schedule").propagate = True


@pytest.fixture(scope="session", autouse=True)
def measurers_start_quickly() -> Iterator[None]:
    """Those that tests start in this process; what a user starts has a fork server of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurer, "MeasureServer", KeptServer)
        patch.setattr(measurer, "_CALIBRATION_SAMPLES", 10)
        yield


@pytest.fixture(scope="session")
def hardware() -> Hardware:
    return Hardware.local()


@pytest.fixture(scope="session")
def matmul(hardware: Hardware) -> Task:
    return extract_tasks("matmul 64 64 64", hardware)[0]


@pytest.fixture(scope="session")
def dense(hardware: Hardware) -> Task:
    """A task whose weight may change its layout."""
    return extract_tasks("dense 64 64 64", hardware)[0]


@pytest.fixture(scope="session")
def measured_dataset(tmp_path_factory: pytest.TempPathFactory, hardware: Hardware) -> Dataset:
    tasks = [task for operator in OPERATORS for task in extract_tasks(operator, hardware)]
    out = tmp_path_factory.mktemp("shared") / "dataset"
    return collect(tasks, out, programs_per_task=20, hardware=hardware, config=QUICK)


@pytest.fixture(scope="session")
def dataset(measured_dataset: Dataset) -> Dataset:
    return measured_dataset


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory, measured_dataset: Dataset) -> Bundle:
    return train(measured_dataset, tmp_path_factory.mktemp("bundles") / "small", held_out_share=0.3)


@pytest.fixture
def bundle_copy(tmp_path: Path, bundle: Bundle) -> Path:
    """A bundle's folder that a test may damage."""
    import shutil

    return Path(shutil.copytree(bundle.path, tmp_path / "copy"))
