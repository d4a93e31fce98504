"""ONNX models whose dimensions have names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from costlib.errors import InputError
from costlib.tvm_compat.any_shape import onnx_of_any_shape
from costlib.workloads.importers.onnx import import_onnx_model
from costlib.workloads.importers.onnx.loading import load_model
from costlib.workloads.network import Network, Reference
from costlib.workloads.ranges.dimension import Dimension, Dims, check_names, name_at
from costlib.workloads.ranges.labels import UnpaddableError
from costlib.workloads.ranges.onnx_program import torch_program
from costlib.workloads.ranges.table import Shape
from costlib.workloads.ranges.torch_program import TorchProgram
from costlib.workloads.signature import Signature


@dataclass(frozen=True)
class OnnxModel:
    """An ONNX model with ranges.

    Attributes
    ----------
    name
        The network's.
    model
        The model, weights within.
    dims
        The ranges that are wanted.
    """

    name: str
    model: onnx.ModelProto = field(repr=False, compare=False)
    dims: tuple[Dimension, ...]
    _networks: dict[tuple[int, ...], Network] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of its inputs."""
        return tuple(tuple(_extents(value)) for value in inputs_of(self.model))

    @cached_property
    def _program(self) -> TorchProgram | UnpaddableError:
        """The model as a program of PyTorch, or why it is none."""
        if not all(dim.low for dim in self.dims):
            return UnpaddableError("an input of an ONNX model has an element at least")
        shapes = {value.name: _extents(value) for value in inputs_of(self.model)}
        inputs = self._at([dim.high for dim in self.dims]).inputs
        try:
            return torch_program(self.name, self.model, self.dims, shapes, inputs)
        except UnpaddableError as error:
            return error

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of its outputs; whatever comes out, if nothing can be padded."""
        if isinstance(self._program, TorchProgram):
            return self._program.output_shapes
        outputs = self._at([dim.high for dim in self.dims]).interface.outputs
        return tuple((None,) * len(spec.shape) for spec in outputs)

    def signature(self, sizes: Sequence[int]) -> Signature:
        """Return how it is called with these extents of its dimensions."""
        return self._at(sizes).interface

    def reference(self, sizes: Sequence[int]) -> Reference:
        """Return the original, called with these extents."""
        reference = self._at(sizes).reference
        assert reference is not None, "an ONNX model has one"
        return reference

    def example(self, sizes: Sequence[int], seed: int = 0) -> list[np.ndarray]:
        """Draw inputs with these extents."""
        return self._at(sizes).random_inputs(seed)

    def paddable(self) -> tuple[tuple[str, ...], str | None]:
        """Return along what a larger shape serves a smaller one, and why not along the others.

        It is proven of the model in PyTorch's operators.
        """
        if isinstance(self._program, TorchProgram):
            return self._program.paddable()
        return (), str(self._program)

    def at(self, point: Sequence[int], along: Sequence[str]) -> tuple[Network, tuple[str, ...]]:
        """Import it at a point; what computes smaller shapes, too, from PyTorch's operators."""
        if not along:
            return self._at(point), ()
        assert isinstance(self._program, TorchProgram), "it is padded"
        network, lengths = self._program.at(point, along)
        return replace(network, reference=self.reference(point)), lengths

    def at_any_shape(self) -> Any:
        """Return it as a Relax module of symbolic extents."""
        return onnx_of_any_shape(self.model)

    def _at(self, sizes: Sequence[int]) -> Network:
        key = tuple(sizes)
        if key not in self._networks:
            extents = {dim.name: extent for dim, extent in zip(self.dims, sizes, strict=True)}
            model = with_extents(self.model, extents)
            self._networks[key] = import_onnx_model(model, name_at(self.name, self.dims, sizes))
        return self._networks[key]


def of_model(path: Path, wanted: Dims) -> OnnxModel:
    """Take an ONNX file with named dimensions.

    Raises
    ------
    InputError
        It is no ONNX model, a dimension is not there, or has a name and no range.
    """
    load_model(path)  # Which sees to it that the file is valid, and its data are in its folder.
    model = onnx.load(str(path))
    names = {n: None for value in inputs_of(model) for n in _extents(value) if isinstance(n, str)}
    check_names(path.stem, wanted, names)
    for name in names:
        if name not in wanted:
            raise InputError(f"{path.stem}: '{name}' has no range; give it one: --dim {name}=1:32")
    dims = tuple(Dimension.of(name, *wanted[name]) for name in names)
    return OnnxModel(path.stem, model, dims)


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs of a model that are no weights."""
    initialised = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initialised]


def _extents(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or int(dim.dim_value) for dim in value.type.tensor_type.shape.dim]


def with_extents(model: onnx.ModelProto, extents: dict[str, int]) -> onnx.ModelProto:
    """Copy a model with extents in place of names; what it says of all else is left out."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    del fixed.graph.value_info[:]
    for value in inputs_of(fixed):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in extents:
                dim.dim_value = extents[dim.dim_param]
    for value in fixed.graph.output:
        value.type.tensor_type.ClearField("shape")
    return fixed
