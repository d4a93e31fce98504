"""Programs that call oneDNN compute what their tasks do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.space.onednn import by_onednn
from costlib.tvm_compat import tvm
from costlib.tvm_compat.api import build_library
from costlib.tvm_compat.onednn import ENVIRONMENT, calls_onednn, find_onednn
from costlib.workloads import extract_tasks
from costlib.workloads.task import Task

PRODUCTS = (
    "matmul 16 32 48",
    "matmul 1 64 96",
    "dense 16 32 64",
    "dense 6 32 24 bias=1",
    "dense 16 48 64 bias=1 relu=1",
    "dense 1 64 96 bias=1 relu=1",
)


def outputs(mod: object, task: Task, path: Path) -> np.ndarray:
    build_library(mod, task.tvm_target(), path, keep_layout=True)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for dtype, shape in task.arguments]
    arguments = [tvm.runtime.tensor(array) for array in arrays]
    tvm.runtime.load_module(str(path))["main"](*arguments)
    return np.asarray(arguments[-1].numpy())


@pytest.mark.parametrize("source", PRODUCTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_it_computes_what_the_task_does(
    source: str, threads: int, hardware: Hardware, tmp_path: Path
) -> None:
    (task,) = extract_tasks(source, hardware)
    mod = by_onednn(task.mod, threads)
    assert mod is not None
    assert calls_onednn(mod)
    found = outputs(mod, task, tmp_path / "onednn.so")
    expected = outputs(task.mod, task, tmp_path / "task.so")
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "source",
    [
        "softmax 16 16",
        "batch_matmul 4 16 16 16",
        "conv2d 1 16 8 8 16 3 pad=1",
        "matmul 16 20 16",  # Columns that are no multiple of a vector.
        "matmul 5 16 32",  # Rows that two threads cannot share.
    ],
)
def test_what_is_no_such_product_is_left(source: str, hardware: Hardware) -> None:
    (task,) = extract_tasks(source, hardware)
    assert not calls_onednn(task.mod)
    assert by_onednn(task.mod, 2) is None


def test_a_missing_library_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "libdnnl.so.3"))
    with pytest.raises(InputError, match=r"^oneDNN 3 is not installed: [^\n]*$"):
        find_onednn()


def test_the_environment_names_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "libdnnl.so.3"
    library.touch()
    monkeypatch.setenv(ENVIRONMENT, str(library))
    assert find_onednn() == str(library)
