"""What TVM's ONNX importer computes wrongly, ours rightly."""

from __future__ import annotations

import contextlib
import io
import itertools

import numpy as np
import onnx
import pytest
from onnx_cases import cases

from costlib.tvm_compat import relax, tvm
from costlib.workloads.importers.onnx import import_onnx_model
from costlib.workloads.importers.onnx.reference import OnnxReference
from costlib.workloads.importers.onnx.replaced import FAULTS

CASES = cases()
OPSETS = sorted({case.opset for case in CASES})


def is_close(ours, theirs):
    same = (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    close = {"rtol": 2e-3 if ours.dtype == np.float16 else 1e-4, "atol": 2e-5, "equal_nan": True}
    return same and np.allclose(ours.astype("float64"), theirs.astype("float64"), **close)


def joined(models):
    """Put models side by side into one."""
    result = onnx.ModelProto()
    result.CopyFrom(models[0])
    for model in models[1:]:
        for part in ("node", "input", "output", "initializer"):
            getattr(result.graph, part).extend(getattr(model.graph, part))
    return result


@pytest.mark.parametrize("opset", OPSETS)
def test_ours_computes_what_onnx_runtime_does(opset, run):
    mine = [case for case in CASES if case.opset == opset]
    models = [case.model(f"{case.name}_") for case in mine]
    feeds = list(itertools.chain.from_iterable(case.feeds() for case in mine))
    outputs = iter(run(import_onnx_model(joined(models), "cases"), feeds))
    for case, model in zip(mine, models, strict=True):
        for theirs in OnnxReference(model)(case.feeds()):
            ours = next(outputs)
            if case.name == "reduce_max_nan":  # ONNX Runtime loses NaN in some places.
                theirs = np.full_like(theirs, np.nan)  # noqa: PLW2901
            assert is_close(ours, theirs), (
                f"{case.name}: {ours.ravel()[:8]}, not {theirs.ravel()[:8]}"
            )


def test_every_fault_has_a_case():
    assert set(FAULTS) <= {case.operator for case in CASES}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("operator", FAULTS)
def test_theirs_is_still_wrong(operator):
    """Fails when TVM has mended an operator: take it out of the table."""
    from tvm.relax.frontend.onnx import from_onnx

    right = []
    for case in (case for case in CASES if case.operator == operator):
        expected = OnnxReference(case.model())(case.feeds())
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            machine = relax.VirtualMachine(tvm.compile(from_onnx(case.model()), "llvm"), tvm.cpu())
            outputs = machine["main"](*map(tvm.runtime.tensor, case.feeds()))
            outputs = [outputs] if isinstance(outputs, tvm.runtime.Tensor) else outputs
            arrays = [output.numpy() for output in outputs]
            if len(arrays) == len(expected) and all(map(is_close, arrays, expected)):
                right.append(case.name)
    assert len(right) < sum(case.operator == operator for case in CASES), right
