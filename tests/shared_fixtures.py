"""Programs, datasets and bundles that several test folders share: small, real, made once."""

from __future__ import annotations

import functools
import gc
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from kept_server import KeptServer
from known_examples import known_examples
from quick import in_every_process, learn_quickly

from costlib.collecting.collect import collect
from costlib.data.dataset import Dataset
from costlib.errors import BundleError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.hub.train import train
from costlib.measure import measurer
from costlib.measure.config import MeasureConfig
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat.api import module_to_json
from costlib.workloads import Task, extract_tasks, load_network, sources

OPERATORS = ("matmul 32 32 32", "matmul 64 32 16", "softmax 32 32")
QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)


@pytest.fixture(autouse=True)
def metaschedule_forgets_its_loggers() -> Iterator[None]:
    """It keeps its log to itself; pytest listens there, and then it cannot be configured again."""
    yield
    logging.getLogger("tvm.s_tir.meta_schedule").propagate = True


@pytest.fixture(scope="session", autouse=True)
def quick() -> Iterator[None]:
    """In this process and those it forks; what a test starts as a user does takes as usual."""
    gc.set_threshold(50_000, 20, 20)  # It would look at all of PyTorch and TVM again and again.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurer, "MeasureServer", KeptServer)
        patch.setattr(DesignSpace, "examples", known_examples)
        patch.setattr(sources, "build_operator", functools.cache(sources.build_operator))
        in_every_process(patch.setattr)
        learn_quickly(patch.setattr)
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
def network_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Write an operator to a file, which other processes read without importing PyTorch."""
    folder = tmp_path_factory.mktemp("networks")

    def write(operator: str) -> str:
        path = folder / f"{operator.replace(' ', '-')}.json"
        path.write_text(module_to_json(load_network(operator).mod))
        return str(path)

    return write


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder that is the same for all processes of this run of the tests."""
    own = tmp_path_factory.getbasetemp()
    return own if worker_id == "master" else own.parent


@pytest.fixture(scope="session")
def measured_dataset(shared: Path, hardware: Hardware) -> Dataset:
    tasks = [task for operator in OPERATORS for task in extract_tasks(operator, hardware)]
    with FileLock(shared / "dataset.lock"):  # Whoever comes second finds nothing left to measure.
        out = shared / "dataset"
        return collect(tasks, out, programs_per_task=20, hardware=hardware, config=QUICK)


@pytest.fixture(scope="session")
def dataset(measured_dataset: Dataset) -> Dataset:
    return measured_dataset


@pytest.fixture(scope="session")
def bundle(shared: Path, measured_dataset: Dataset) -> Bundle:
    with FileLock(shared / "bundle.lock"):
        try:
            return Bundle.load(shared / "bundle")
        except BundleError:
            return train(measured_dataset, shared / "bundle", held_out_share=0.3)


@pytest.fixture
def bundle_copy(tmp_path: Path, bundle: Bundle) -> Path:
    """A bundle's folder that a test may damage."""
    import shutil

    return Path(shutil.copytree(bundle.path, tmp_path / "copy"))
