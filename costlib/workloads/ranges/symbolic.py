"""Networks whose extents have names and ranges, wherever they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from costlib.errors import InputError
from costlib.workloads import zoo
from costlib.workloads.importers.torch_export import export_in_ranges, load_program
from costlib.workloads.network import Network, Reference
from costlib.workloads.ranges.dimension import Dimension, Dims, check_names
from costlib.workloads.ranges.onnx_model import of_model
from costlib.workloads.ranges.table import Shape
from costlib.workloads.ranges.torch_program import TorchProgram, of_program
from costlib.workloads.signature import Signature
from costlib.workloads.torch_arrays import to_torch


class Symbolic(Protocol):
    """A network at any extents of its dimensions."""

    @property
    def name(self) -> str:
        """The network's."""

    @property
    def dims(self) -> tuple[Dimension, ...]:
        """The ranges that are wanted."""

    @property
    def input_shapes(self) -> tuple[Shape, ...]:
        """The shapes of its inputs."""

    @property
    def output_shapes(self) -> tuple[Shape, ...]:
        """The shapes of its outputs, as far as dimensions say them."""

    def signature(self, sizes: Sequence[int]) -> Signature:
        """Return how it is called with these extents of its dimensions."""

    def reference(self, sizes: Sequence[int]) -> Reference:
        """Return the original, called with these extents."""

    def example(self, sizes: Sequence[int], seed: int = 0) -> list[np.ndarray]:
        """Draw inputs with these extents."""

    def paddable(self) -> tuple[tuple[str, ...], str | None]:
        """Return the most dimensions along which a larger shape serves a smaller one.

        And why not all of them.
        """

    def at(self, point: Sequence[int], along: Sequence[str]) -> tuple[Network, tuple[str, ...]]:
        """Import it at a point, which computes whatever is smaller along some dimensions.

        Returns
        -------
        network, lengths
            The network, and the dimensions whose true extents it takes after its inputs.
        """

    def at_any_shape(self) -> Any:
        """Return it as a Relax module of symbolic extents.

        Raises
        ------
        UnsupportedModelError
            TVM has no such program.
        """


def symbolic(source: Any, dims: Dims) -> Symbolic | None:
    """Take a network with ranges of its dimensions.

    Parameters
    ----------
    source
        A name of the zoo, an exported program with dynamic shapes, the file of one, or an ONNX
        file with named dimensions.
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
        return of_program(load_program(Path(source)), Path(source).stem, dims)
    if isinstance(source, (str, Path)) and Path(source).suffix.lower() == ".onnx" and dims:
        if not Path(source).is_file():
            raise InputError(f"{source}: there is no such file")
        return of_model(Path(source), dims)
    if _is_program(source):
        return of_program(source, name, dims)
    if dims:
        raise InputError(
            f"{name} cannot have ranges; they take a network of the zoo, a program that "
            "torch.export.export made with dynamic_shapes, or an ONNX file with named dimensions"
        )
    return None


def _is_program(source: Any) -> bool:
    return type(source).__name__ == "ExportedProgram" and type(source).__module__.startswith(
        "torch"
    )


def _of_zoo(name: str, wanted: Dims) -> TorchProgram:
    import torch

    spec = zoo.network_spec(name)
    check_names(name, wanted, spec.dims)
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
    found = of_program(program, name, wanted)
    assert found is not None
    highs = zip(found.inputs, takes, strict=True)
    return replace(found, inputs=tuple(replace(one, high=given.high) for one, given in highs))
