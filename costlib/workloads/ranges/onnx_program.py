"""ONNX models as programs of PyTorch, of which padding is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import nn

from costlib.errors import UnsupportedModelError, quoted
from costlib.workloads.importers.torch_export import decomposed_graph, export_in_ranges
from costlib.workloads.network import InputSpec
from costlib.workloads.ranges import onnx_moving, onnx_operators  # noqa: F401 - they enter themselves
from costlib.workloads.ranges.dimension import Dimension
from costlib.workloads.ranges.labels import UnpaddableError
from costlib.workloads.ranges.onnx_node import OPERATORS, Constant, OnnxNode
from costlib.workloads.ranges.torch_program import TorchProgram
from costlib.workloads.torch_arrays import to_torch


class OnnxModule(nn.Module):  # type: ignore[misc]
    """The graph of an ONNX model, node after node.

    Parameters
    ----------
    model
        The model, weights within.
    inputs
        Names of what it takes.

    Attributes
    ----------
    refused
        Why an operator could not be computed, if one could not.

    Raises
    ------
    UnpaddableError
        It has an operator that is not written in PyTorch.
    """

    def __init__(self, model: onnx.ModelProto, inputs: Sequence[str]) -> None:
        super().__init__()
        opsets = {entry.domain: entry.version for entry in model.opset_import}
        self.refused: UnpaddableError | None = None
        self._opset = max(opsets.get("", 0), opsets.get("ai.onnx", 0))
        self._inputs = inputs
        self._outputs = [value.name for value in model.graph.output]
        self._arrays: dict[str, np.ndarray] = {}
        self._nodes: list[tuple[onnx.NodeProto, dict[str, Any]]] = []
        for tensor in model.graph.initializer:
            self._keep(tensor.name, numpy_helper.to_array(tensor))
        for node in model.graph.node:
            given = {one.name: helper.get_attribute_value(one) for one in node.attribute}
            if node.op_type == "Constant" and isinstance(given.get("value"), onnx.TensorProto):
                self._keep(node.output[0], numpy_helper.to_array(given["value"]))
            elif node.domain in ("", "ai.onnx") and node.op_type in OPERATORS:
                self._nodes.append((node, given))
            else:
                raise UnpaddableError(f"{node.op_type} is not written in PyTorch")

    def _keep(self, name: str, array: np.ndarray) -> None:
        try:
            tensor = to_torch(np.array(array))
        except TypeError:
            raise UnpaddableError(f"PyTorch has no {array.dtype}") from None
        self.register_buffer(f"weight_{len(self._arrays)}", tensor)
        self._arrays[name] = array

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute the outputs."""
        known: dict[str, Any] = {
            name: Constant(self.get_buffer(f"weight_{number}"), array)
            for number, (name, array) in enumerate(self._arrays.items())
        }
        known |= dict(zip(self._inputs, inputs, strict=True))
        for node, attributes in self._nodes:
            given = [known[name] if name else None for name in node.input]
            try:
                found = OPERATORS[node.op_type](
                    OnnxNode(given, attributes, self._opset, len(node.output))
                )
            except UnpaddableError as error:
                self.refused = UnpaddableError(f"{node.op_type}: {error}")
                raise self.refused from None
            results = found if isinstance(found, tuple) else (found,)
            known.update(zip(node.output, results, strict=False))
        outputs = OnnxNode([known[name] for name in self._outputs], {}, self._opset)
        return tuple(outputs.tensor(number) for number in range(len(self._outputs)))


def torch_program(
    name: str,
    model: onnx.ModelProto,
    dims: Sequence[Dimension],
    shapes: Mapping[str, Sequence[int | str]],
    inputs: Sequence[InputSpec],
) -> TorchProgram:
    """Write a model as a program of PyTorch.

    Parameters
    ----------
    name, model, dims
        The network, and the ranges that are wanted.
    shapes
        Of its inputs, by their names.
    inputs
        What it takes at the largest extents.

    Raises
    ------
    UnpaddableError
        It cannot be written so, or not for all shapes of the ranges.
    """
    largest = {dim.name: max(dim.high, dim.low + 1, 2) for dim in dims}
    named = {
        dim.name: torch.export.Dim(f"d{number}", min=dim.low, max=largest[dim.name])
        for number, dim in enumerate(dims)
    }
    rng = np.random.default_rng(0)
    example = []
    for spec, shape in zip(inputs, shapes.values(), strict=True):
        extents = tuple(largest[n] if isinstance(n, str) else n for n in shape)
        example.append(to_torch(InputSpec(spec.name, spec.dtype, extents, spec.high).random(rng)))
    dynamic = [
        {axis: named[n] for axis, n in enumerate(shape) if isinstance(n, str)}
        for shape in shapes.values()
    ]
    module = OnnxModule(model, list(shapes)).eval()
    try:
        program = export_in_ranges(module, example, (tuple(dynamic),), name)
        graph = decomposed_graph(program)
    except UnsupportedModelError as error:
        raise module.refused or UnpaddableError(quoted(error)) from None
    users = set(program.graph_signature.user_inputs)
    placeholders = [node for node in program.graph.nodes if node.name in users]
    symbols = {
        n: str(node.meta["val"].shape[axis].node.expr)
        for node, shape in zip(placeholders, shapes.values(), strict=True)
        for axis, n in enumerate(shape)
        if isinstance(n, str)
    }
    return TorchProgram(name, program, tuple(dims), symbols, tuple(inputs), graph)
