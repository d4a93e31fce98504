"""Programs of ``torch.export`` whose extents have names and ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from torch import fx

from costlib.errors import InputError, UnsupportedModelError
from costlib.tvm_compat.any_shape import torch_of_any_shape
from costlib.workloads.importers.torch_export import decomposed_graph, export_with, signature_at
from costlib.workloads.network import InputSpec, Network
from costlib.workloads.ranges.dimension import Dimension, Dims, check_names, name_at
from costlib.workloads.ranges.labels import UnpaddableError, axis_of, parts_of
from costlib.workloads.ranges.padding import Padded, padded
from costlib.workloads.ranges.table import Shape
from costlib.workloads.signature import Signature
from costlib.workloads.torch_arrays import to_torch
from costlib.workloads.torch_reference import TorchReference


@dataclass(frozen=True)
class TorchProgram:
    """A network as a ``torch.export`` program with dynamic shapes.

    Attributes
    ----------
    name
        The network's.
    program
        The program.
    dims
        The ranges that are wanted.
    symbols
        PyTorch's symbol of each dimension, by its name.
    inputs
        What it takes at the largest extents.
    graph
        The program over ATen's operators.
    """

    name: str
    program: Any
    dims: tuple[Dimension, ...]
    symbols: Mapping[str, str]
    inputs: tuple[InputSpec, ...]
    graph: Any

    @cached_property
    def _module(self) -> Any:
        return self.program.module(check_guards=False)

    def signature(self, sizes: Sequence[int]) -> Signature:
        """Return how it is called with these extents of its dimensions."""
        return signature_at(self.program, self.of_symbols(sizes))

    def of_symbols(self, sizes: Sequence[int]) -> dict[str, int]:
        """Return the extents by PyTorch's symbols."""
        return {self.symbols[dim.name]: n for dim, n in zip(self.dims, sizes, strict=True)}

    def reference(self, sizes: Sequence[int]) -> TorchReference:
        """Return the original, called with these extents."""
        return TorchReference(self._module, self.signature(sizes), program=self.program)

    def example(self, sizes: Sequence[int], seed: int = 0) -> list[np.ndarray]:
        """Draw inputs with these extents."""
        rng = np.random.default_rng(seed)
        specs = self.signature(sizes).inputs
        return [
            replace(given, shape=spec.shape).random(rng)
            for given, spec in zip(self.inputs, specs, strict=True)
        ]

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of its inputs."""
        return self._shapes([n for n in self.graph.graph.nodes if n.op == "placeholder"])

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of its outputs, as far as dimensions say them."""
        (output,) = (node for node in self.graph.graph.nodes if node.op == "output")
        return self._shapes([one for one in output.args[0] if isinstance(one, fx.Node)])

    def _shapes(self, tensors: Sequence[Any]) -> tuple[Shape, ...]:
        names = {symbol: name for name, symbol in self.symbols.items()}

        def named(extent: Any) -> int | str | None:
            try:
                found = axis_of(extent if isinstance(extent, int) else extent.node.expr)
            except UnpaddableError:
                return None
            (factor,) = found or (1,)
            if isinstance(factor, int):
                return factor
            symbol, _ = parts_of(factor)
            return factor.replace(symbol, names[symbol])

        return tuple(tuple(map(named, one.meta["val"].shape)) for one in tensors)

    def paddable(self) -> tuple[tuple[str, ...], str | None]:
        """Return the most dimensions along which a larger shape serves a smaller one.

        And why not all of them.
        """
        names = [dim.name for dim in self.dims if dim.low < dim.high]
        largest = [dim.high for dim in self.dims]
        reason = None
        for count in range(len(names), 0, -1):
            for along in combinations(names, count):
                try:
                    self._padded(largest, along)
                    return along, reason
                except UnpaddableError as error:
                    reason = reason or str(error)
        return (), reason

    def _padded(self, point: Sequence[int], along: Sequence[str]) -> Padded:
        sizes = {dim.name: n for dim, n in zip(self.dims, point, strict=True)}
        return padded(
            self.graph,
            {self.symbols[name]: n for name, n in sizes.items() if name in along},
            {self.symbols[name]: n for name, n in sizes.items() if name not in along},
            {self.symbols[dim.name]: dim.low for dim in self.dims},
        )

    def at(self, point: Sequence[int], along: Sequence[str]) -> tuple[Network, tuple[str, ...]]:
        """Import it at a point, which computes whatever is smaller along some dimensions."""
        program = self._padded(point, along)
        inputs, extents = self.example(point), self.of_symbols(point)
        lengths = [np.array(extents[symbol], "int64") for symbol in program.lengths]
        arguments = [to_torch(array) for array in (*inputs, *lengths)]
        found = export_with(program.module, arguments, {}, name_at(self.name, self.dims, point))
        examples = (*inputs, *lengths)
        names = {symbol: name for name, symbol in self.symbols.items()}
        taken = tuple(names[symbol] for symbol in program.lengths)
        return replace(found, reference=self.reference(point), examples=examples), taken

    def at_any_shape(self) -> Any:
        """Return it as a Relax module of symbolic extents."""
        return torch_of_any_shape(self.program)


def of_program(program: Any, name: str, wanted: Dims) -> TorchProgram | None:
    """Take a program; see :func:`costlib.workloads.ranges.symbolic.symbolic`."""
    found = _dimensions(program, name)
    check_names(name, wanted, found)
    if not found:
        return None
    for spec in program.graph_signature.output_specs:
        if type(spec.arg).__name__.startswith("Sym"):
            raise InputError(f"{name} returns a size as a number; return tensors alone")
    limits = {str(symbol): limit for symbol, limit in program.range_constraints.items()}
    dims = []
    for dim, symbol in found.items():
        least, high = int(limits[symbol].lower), limits[symbol].upper
        low = max(least, 1)
        is_open = not (isinstance(high, int) or high.is_Integer)
        if dim not in wanted and is_open:
            raise InputError(
                f"{name}: '{dim}' has no largest extent; give it one, e.g. --dim {dim}={low}:128"
            )
        one = Dimension.of(dim, *wanted.get(dim, (low, 0 if is_open else int(high))))
        if one.low < least or not (is_open or one.high <= int(high)):
            most = "any number" if is_open else int(high)
            raise InputError(
                f"{name} takes {least} to {most} for '{dim}', not {one.low} to {one.high}"
            )
        dims.append(one)
    inputs = _inputs(program, {found[dim.name]: dim.high for dim in dims})
    try:
        graph = decomposed_graph(program)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{name} cannot have ranges: {error}") from None
    return TorchProgram(name, program, tuple(dims), found, inputs, graph)


def _dimensions(program: Any, name: str) -> dict[str, str]:
    """Name the symbols of a program's inputs, as its author did where that is known."""
    found: dict[str, str] = {}
    users = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in users:
            continue
        for axis, extent in enumerate(getattr(node.meta["val"], "shape", ())):
            if isinstance(extent, int):
                continue
            if not extent.node.expr.is_Symbol:
                raise InputError(
                    f"{name}: dimension {axis} of input '{node.name}' is {extent.node.expr}; "
                    "a range takes one that is a number by itself"
                )
            symbol = str(extent.node.expr)
            if symbol not in found.values():
                found[_given_name(extent) or f"{node.name}.{axis}"] = symbol
    return found


def _given_name(extent: Any) -> str | None:
    """Return what a ``torch.export.Dim`` was called; a saved program has forgotten it."""
    shapes = extent.node.shape_env
    names = getattr(shapes, "source_name_to_debug_name", {})
    sources = getattr(shapes, "var_to_sources", {}).get(extent.node.expr, ())
    return next((names[s.name] for s in sources if s.name in names), None)


def _inputs(program: Any, largest: Mapping[str, int]) -> tuple[InputSpec, ...]:
    """Describe the inputs, integers as large as those that the program came with."""
    import torch
    from torch.utils import _pytree as pytree

    specs = signature_at(program, largest).inputs
    given = pytree.tree_leaves(program.example_inputs)
    tensors = [value for value in given if isinstance(value, torch.Tensor)]
    if len(tensors) != len(specs):
        return tuple(InputSpec(s.name, s.dtype, s.shape) for s in specs)
    return tuple(
        InputSpec(s.name, s.dtype, s.shape, max(2, int(t.max()) + 1))
        if not t.dtype.is_floating_point and t.numel()
        else InputSpec(s.name, s.dtype, s.shape)
        for s, t in zip(specs, tensors, strict=True)
    )
