"""ONNX models."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from costlib.errors import InputError, UnsupportedModelError, quoted
from costlib.workloads.importers.relax import input_specs
from costlib.workloads.network import Network


def import_onnx(path: Path) -> Network:
    """Import an ONNX model, and weights kept in files beside it.

    Errors are those of :func:`costlib.workloads.load_network`.
    """
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except Exception as error:
        raise InputError(f"{path}: not a valid ONNX model: {quoted(error, 0)}") from None
    _check_static(path, model)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mod = from_onnx(model, keep_params_in_input=False)
    except Exception as error:
        reason = quoted(error)
        raise UnsupportedModelError(f"{path}: TVM cannot import this model: {reason}") from None
    return Network(path.stem, mod, input_specs(mod, str(path)))


def _check_static(path: Path, model: Any) -> None:
    initialised = {tensor.name for tensor in model.graph.initializer}
    for value in model.graph.input:
        if value.name in initialised:
            continue
        for axis, extent in enumerate(value.type.tensor_type.shape.dim):
            if not extent.HasField("dim_value") or extent.dim_value < 1:
                label = extent.dim_param or "unknown"
                raise UnsupportedModelError(
                    f"{path}: dimension {axis} of input '{value.name}' is dynamic ({label}); "
                    "fix it, e.g. with onnx.tools.update_model_dims, before importing"
                )
