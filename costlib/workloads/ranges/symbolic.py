"""Networks as programs whose extents have names and ranges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from costlib.errors import InputError, UnsupportedModelError
from costlib.workloads import zoo
from costlib.workloads.importers.torch_export import (
    decomposed_graph,
    export_in_ranges,
    load_program,
    signature_at,
)
from costlib.workloads.network import InputSpec
from costlib.workloads.ranges.dimension import Dimension, Dims
from costlib.workloads.signature import Signature
from costlib.workloads.torch_arrays import to_torch
from costlib.workloads.torch_reference import TorchReference


@dataclass(frozen=True)
class Symbolic:
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


def symbolic(source: Any, dims: Dims) -> Symbolic | None:
    """Take a network with ranges of its dimensions.

    Parameters
    ----------
    source
        A name of the zoo, an exported program with dynamic shapes, or the file of one.
    dims
        Ranges by the dimensions' names. Those of a program that are not mentioned have the range
        that it was exported with.

    Returns
    -------
    Symbolic
        ``None`` if the network has fixed shapes and no range is wanted.

    Raises
    ------
    InputError
        A dimension that it does not have, or a range that it does not take.
    """
    name = str(source).strip() if isinstance(source, (str, Path)) else type(source).__name__
    if isinstance(source, str) and name.partition("@")[0] in zoo.list_networks():
        return _of_zoo(name, dims) if dims else None
    if isinstance(source, (str, Path)) and Path(source).suffix.lower() == ".pt2":
        if not Path(source).is_file():
            raise InputError(f"{source}: there is no such file")
        return _of_program(load_program(Path(source)), Path(source).stem, dims)
    if _is_program(source):
        return _of_program(source, name, dims)
    if dims:
        raise InputError(
            f"{name} cannot have ranges; they take a network of the zoo, or a program that "
            "torch.export.export made with dynamic_shapes"
        )
    return None


def _is_program(source: Any) -> bool:
    return type(source).__name__ == "ExportedProgram" and type(source).__module__.startswith(
        "torch"
    )


def _of_zoo(name: str, wanted: Dims) -> Symbolic:
    import torch

    spec = zoo.network_spec(name)
    _check_names(name, wanted, spec.dims)
    dims = tuple(Dimension.of(dim, *wanted[dim]) for dim in spec.dims if dim in wanted)
    largest = {spec.dims[dim.name]: dim.high for dim in dims}
    size = replace(spec.sized(name.partition("@")[2]), **largest)
    takes = spec.takes(size)
    for dim in dims:
        if dim.low == dim.high:
            raise InputError(f"the range {dim} is a single extent; write it in the network's name")
    shapes: list[dict[int, Any]] = [{} for _ in takes]
    for dim in dims:
        field = spec.dims[dim.name]
        longer = spec.takes(replace(size, **{field: dim.high + 1}))
        one = torch.export.Dim(dim.name, min=dim.low, max=dim.high)
        for shape, given, other in zip(shapes, takes, longer, strict=True):
            pairs = enumerate(zip(given.shape, other.shape, strict=True))
            shape.update({axis: one for axis, (extent, more) in pairs if extent != more})
    rng = np.random.default_rng(0)
    example = [to_torch(given.random(rng)) for given in takes]
    program = export_in_ranges(zoo.module_of(spec, size), example, tuple(shapes), name)
    found = _of_program(program, name, wanted)
    assert found is not None
    highs = zip(found.inputs, takes, strict=True)
    return replace(found, inputs=tuple(replace(one, high=given.high) for one, given in highs))


def _of_program(program: Any, name: str, wanted: Dims) -> Symbolic | None:
    found = _dimensions(program, name)
    _check_names(name, wanted, found)
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
    return Symbolic(name, program, tuple(dims), found, inputs, graph)


def _check_names(name: str, wanted: Dims, known: Mapping[str, str]) -> None:
    for dim in wanted:
        if dim not in known:
            has = f"it has {', '.join(known)}" if known else "its shapes are fixed"
            raise InputError(f"{name} has no dimension '{dim}'; {has}")


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
