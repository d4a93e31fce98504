"""Programs for tensor cores become CUDA code, without a compiler or a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import tvm, typed_pointers
from costlib.workloads import extract_tasks

SCRIPT = """
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((64, 64), "float16"), b: R.Tensor((64, 64), "float16")):
        with R.dataflow():
            c = R.matmul(a, b, out_dtype="float32")
            R.output(c)
        return c
"""


@pytest.fixture(scope="module")
def program() -> tuple[Any, Any]:
    (task,) = extract_tasks(tvm.script.from_source(SCRIPT), Hardware.cuda("sm_80"))
    return next(s for _, s in DesignSpace(task).sample(0) if s is not None).mod, task.tvm_target()


def source(program: tuple[Any, Any]) -> str:
    mod, target = program
    with target:
        (code,) = tvm.build(mod, target=target).imports
    return str(code.inspect_source("cuda"))


def test_sums_are_stored_as_what_they_are(program: tuple[Any, Any]) -> None:
    text = source(program)
    stored = [line for line in text.splitlines() if "store_matrix_sync" in line]
    assert stored
    assert all("(float*)" in line and "half*" not in line for line in stored)
    assert any("(half*)" in line for line in text.splitlines() if "load_matrix_sync" in line)


def test_it_is_still_needed(program: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typed_pointers._Pointers, "replaced", lambda *_: None)
    with pytest.raises(Exception, match="must match the source buffer"):
        source(program)
