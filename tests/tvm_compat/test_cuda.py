"""CUDA libraries are built without a GPU, by whichever compiler is installed."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from cuda_compiler import needs_cuda_compiler

from costlib.errors import EnvironmentMismatchError
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import cuda
from costlib.tvm_compat.api import build_library
from costlib.workloads import Task, extract_tasks


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TVM_CUDA_COMPILE_MODE", "CUDA_PATH", "TVM_CUDA_NVRTC_EXTRA_OPTS"):
        monkeypatch.setenv(name, "restored")  # Whatever the test sets is undone after it.
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(cuda, "_has_nvrtc", lambda: False)


@pytest.fixture(scope="module")
def softmax() -> Task:
    return extract_tasks("softmax 64 64", Hardware.cuda("sm_80"))[0]


@pytest.mark.usefixtures("nothing_installed")
def test_no_compiler(softmax: Task, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMismatchError) as error:
        build_library(softmax.mod, softmax.tvm_target(), tmp_path / "a.so")
    assert "no CUDA compiler found; install the CUDA toolkit" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.usefixtures("nothing_installed")
def test_nvrtc_is_used_where_nvcc_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    headers = tmp_path / "cu13" / "include"
    headers.mkdir(parents=True)
    (headers / "cuda_runtime.h").touch()
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(cuda, "_has_nvrtc", lambda: True)
    monkeypatch.setattr(cuda.importlib.util, "find_spec", lambda _: package)
    assert cuda.find_compiler() == "nvrtc"
    assert os.environ["CUDA_PATH"] == str(headers.parent)
    assert os.environ["TVM_CUDA_NVRTC_EXTRA_OPTS"] == f"-I{headers}/cccl"


@pytest.mark.usefixtures("nothing_installed")
def test_the_users_choice_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_CUDA_COMPILE_MODE", "nvrtc")
    assert cuda.find_compiler() == "nvrtc"


@needs_cuda_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_program_is_compiled_for_a_gpu_that_is_not_here(arch: str, tmp_path: Path) -> None:
    task = extract_tasks("softmax 64 64", Hardware.cuda(arch))[0]
    schedule = next(s for _, s in DesignSpace(task).sample(0) if s is not None)
    build_library(schedule.mod, task.tvm_target(), tmp_path / "a.so")
    assert (tmp_path / "a.so").read_bytes()[:4] == b"\x7fELF"


@needs_cuda_compiler
def test_code_that_does_not_compile_is_found_out_without_a_gpu(softmax: Task) -> None:
    if cuda.why_no_runtime() is None:
        pytest.skip("TVM itself compiles here")
    broken = SimpleNamespace(kind="cuda", inspect_source=lambda _: "this is not CUDA")
    with pytest.raises(RuntimeError, match="error"):
        cuda.check_compiles(SimpleNamespace(imports=[broken]), softmax.tvm_target())
