"""ONNX models as networks."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from costlib.errors import UnsupportedModelError
from costlib.tvm_compat import relax
from costlib.workloads.importers.onnx import catalogue
from costlib.workloads.importers.onnx.casting import dtype_of
from costlib.workloads.importers.onnx.graph import RefusedNode, Walker
from costlib.workloads.importers.onnx.inferred import disagreement
from costlib.workloads.importers.onnx.loading import check_model, load_model
from costlib.workloads.importers.onnx.node import Refused, Value
from costlib.workloads.importers.onnx.reference import OnnxReference
from costlib.workloads.importers.onnx.tensors import Tensor, constant, numpy_dtype
from costlib.workloads.importers.relax import input_specs
from costlib.workloads.integer_products import with_integer_products
from costlib.workloads.network import Network
from costlib.workloads.signature import flat_signature


class _Undeclared(Refused):
    """An output that is not what the file declares."""


def import_onnx(path: Path) -> Network:
    """Import an ONNX model, and weights kept in files beside it.

    Errors are those of :func:`costlib.workloads.load_network`.
    """
    model, weights = load_model(path)
    return _imported(model, path.stem, str(path), str(path), weights)


def import_onnx_model(model: onnx.ModelProto, name: str) -> Network:
    """Import an ONNX model in memory as a network of that name.

    Errors are those of :func:`costlib.workloads.load_network`.
    """
    check_model(model, name)
    return _imported(model, name, name)


def _imported(
    model: onnx.ModelProto,
    name: str,
    source: str,
    path: str | None = None,
    weights: dict[str, np.ndarray] | None = None,
) -> Network:
    """Import a model; of ``weights`` nothing is left in the end."""
    catalogue.load()
    opsets = {
        "" if entry.domain == "ai.onnx" else entry.domain: entry.version
        for entry in model.opset_import
    }
    opsets.setdefault("", 1)
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    lacking = catalogue.lacking(model.graph, opsets, set(functions))
    if lacking:
        raise UnsupportedModelError(
            f"{source}: not supported: {', '.join(map(catalogue.explained, lacking))}", lacking
        )
    weights, is_spread, is_exact = weights or {}, bool(weights), False
    try:
        mod = _built(model.graph, Walker(opsets, functions, weights), source)
    except UnsupportedModelError as error:
        if is_spread or not isinstance(error.__cause__, _Undeclared):
            raise
        is_exact = True
        try:
            mod = _built(model.graph, Walker(opsets, functions, {}, is_exact=True), source)
        except UnsupportedModelError:
            raise error from None
    reference: Any = OnnxReference(model, path, is_exact)
    network = Network(name, mod, input_specs(mod, source), reference)
    named = [
        spec.model_copy(update={"name": output.name})
        for spec, output in zip(network.interface.outputs, model.graph.output, strict=True)
    ]
    return replace(network, signature=flat_signature(network.interface.inputs, named))


def _built(graph: onnx.GraphProto, walker: Walker, source: str) -> Any:
    """Return a graph as a module of Relax."""
    inputs = _inputs(graph, source)
    builder = relax.BlockBuilder()
    refused: Refused | RefusedNode | None = None
    with builder.function("main", list(inputs.values())):
        with builder.dataflow():
            try:
                output = _outputs(graph, walker, inputs)
            except (Refused, RefusedNode) as reason:
                refused = reason  # TVM warns of a function that is left without an end.
                output = relax.Tuple([])
            result = builder.emit_output(output)
        builder.emit_func_output(result)
    if refused is not None:
        operators = [refused.operator] if isinstance(refused, RefusedNode) else []
        raise UnsupportedModelError(f"{source}: {refused}", operators) from refused
    return with_integer_products(builder.get())


def _outputs(graph: onnx.GraphProto, walker: Walker, inputs: dict[str, Any]) -> Any:
    """Import a graph's nodes; return its output, or a tuple of its outputs."""
    scope: dict[str, Value] = {name: Tensor(variable) for name, variable in inputs.items()}
    results = walker.graph(graph, scope)
    outputs = [_output(*pair) for pair in zip(graph.output, results, strict=True)]
    return outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)


def _inputs(graph: onnx.GraphProto, source: str) -> dict[str, Any]:
    """Return a variable for each input that is no weight."""
    initialised = {tensor.name for tensor in graph.initializer}
    variables: dict[str, Any] = {}
    taken: set[str] = set()
    for value in graph.input:
        if value.name in initialised:
            continue
        if value.type.WhichOneof("value") != "tensor_type":
            raise UnsupportedModelError(f"{source}: input '{value.name}' is no tensor")
        kind = value.type.tensor_type
        if not kind.HasField("shape"):
            raise UnsupportedModelError(
                f"{source}: input '{value.name}' has no shape; give it one before importing"
            )
        for axis, extent in enumerate(kind.shape.dim):
            if not extent.HasField("dim_value") or extent.dim_value < 1:
                if extent.HasField("dim_value"):
                    raise UnsupportedModelError(
                        f"{source}: input '{value.name}' has no elements: "
                        f"dimension {axis} is {extent.dim_value}"
                    )
                label = extent.dim_param or "unknown"
                way = (
                    f"`costlib tune --dim {label}=1:32` takes a range of it; or "
                    if (extent.dim_param)
                    else ""
                )
                raise UnsupportedModelError(
                    f"{source}: dimension {axis} of input '{value.name}' is dynamic ({label}); "
                    f"{way}fix it, e.g. with onnx.tools.update_model_dims, before importing"
                )
        try:
            dtype = dtype_of(kind.elem_type)
        except Refused as reason:
            raise UnsupportedModelError(f"{source}: input '{value.name}' {reason}") from None
        shape = [dim.dim_value for dim in kind.shape.dim]
        label = _identifier(value.name, taken)
        variables[value.name] = relax.Var(label, relax.TensorType(shape, dtype))
    return variables


def _identifier(name: str, taken: set[str]) -> str:
    """Return a name for a variable of Relax that is like an input's and that no other has."""
    label = re.sub(r"\W", "_", name.replace(".", "_"), flags=re.ASCII)
    label = label if label[:1].isalpha() or label[:1] == "_" else f"input_{label}"
    unique, count = label, 0
    while unique in taken:
        count += 1
        unique = f"{label}_{count}"
    taken.add(unique)
    return unique


def _output(declared: onnx.ValueInfoProto, value: Value) -> Any:
    if not isinstance(value, Tensor):
        kind = "an optional without a value" if value is None else "a sequence"
        raise Refused(f"output '{declared.name}' is {kind}; give out tensors")
    if not value.size and value.shape[0]:
        raise Refused(f"output '{declared.name}' has no elements: {list(value.shape)}")
    problem = disagreement(declared.type, value)
    if problem is not None:
        raise _Undeclared(f"output '{declared.name}': the model {problem}, which the file declares")
    if not value.size:
        return constant(np.zeros(value.shape, numpy_dtype(value.dtype))).expr
    return value.expr
