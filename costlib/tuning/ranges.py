"""Networks whose dimensions have ranges: what a run says of them, and shapes that are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from costlib.errors import DifferentNetworkError
from costlib.frozen import Frozen
from costlib.tuning.comparison import Comparison
from costlib.tuning.originals import ROUNDED, Arrays, faults_of
from costlib.tuning.tensors import cropped_to
from costlib.workloads.agreement import Expectation, OutputAgreement, largest_of
from costlib.workloads.network import Network
from costlib.workloads.ranges.ranged import RangedNetwork
from costlib.workloads.ranges.symbolic import Symbolic
from costlib.workloads.ranges.table import Point, ShapeTable, padded_to

_BETWEEN = 4
"""Shapes between the points that are compared, beside the ends of the ranges."""


class PointResult(Frozen):
    """A shape that was tuned.

    Attributes
    ----------
    sizes
        Extents of the dimensions.
    network
        What it is called among the networks of the result, where its latencies are.
    trials
        Programs of its tasks that were measured; tasks that points share count for each.
    latency_before_s, latency_after_s, pytorch_latency_s
        Seconds of one call, see :class:`costlib.tuning.comparison.Comparison`.
    """

    sizes: dict[str, int]
    network: str
    trials: int = 0
    latency_before_s: float
    latency_after_s: float
    pytorch_latency_s: float | None


class ShapeResult(Frozen):
    """A shape at which the compiled network was compared with the original.

    Attributes
    ----------
    sizes, served_by
        Extents of the dimensions, and those of the point that computes it.
    original
        What it is compared with: the original, or if numbers are rounded to fewer bits, the network
        of this shape alone in float32 with the same numbers rounded.
    max_abs_error
        Largest difference of any output.
    rounding_error
        Largest difference from the original that comes of such rounding.
    outputs
        Each output.
    fault
        What is wrong; ``None`` if nothing is.
    """

    sizes: dict[str, int]
    served_by: dict[str, int]
    original: str = "PyTorch"
    max_abs_error: float | None
    rounding_error: float | None = None
    outputs: tuple[OutputAgreement, ...] = ()
    fault: str | None = None

    @property
    def shape(self) -> str:
        """The extents, in words."""
        return sizes_text(self.sizes)


class RangeResult(Frozen):
    """A network that takes any shape of its ranges.

    Attributes
    ----------
    network, library
        Its name, and the compiled file.
    dims
        Smallest and largest extent of each dimension.
    padded
        Dimensions along which the next larger point computes what lies between; along others each
        extent is a point, or the program of any shape computes it.
    between
        The same in words, and why.
    points
        Shapes that were tuned and serve; others that were tuned are slower than a larger one.
    compared
        Shapes that were compared with the original.
    """

    network: str
    library: str
    dims: dict[str, tuple[int, int]]
    padded: tuple[str, ...]
    between: str
    points: tuple[PointResult, ...]
    compared: tuple[ShapeResult, ...]


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Write extents as a person does."""
    return ", ".join(f"{name}={extent}" for name, extent in sizes.items())


def telling_shapes(network: RangedNetwork, seed: int = 0) -> list[tuple[int, ...]]:
    """Choose shapes to compare: both ends, one beyond a point, and some between the points."""
    dims, points = network.table.dims, network.table.points
    rng = np.random.default_rng(seed)
    beyond = points[len(points) // 2].sizes
    found = [
        tuple(dim.low for dim in dims),
        tuple(dim.high for dim in dims),
        tuple(min(n + 1, dim.high) for dim, n in zip(dims, beyond, strict=True)),
    ]
    found += [
        tuple(int(rng.integers(dim.low, dim.high, endpoint=True)) for dim in dims)
        for _ in range(_BETWEEN)
    ]
    return list(dict.fromkeys(found))


Call = Callable[[Point, Arrays], Arrays]
"""Runs what was compiled for a point with all that it takes, and returns all that it returns."""

Run = Callable[[Network, Arrays], Arrays]
"""Compiles a network in float32 with rounded numbers, untuned, and runs it."""

Rounded = Callable[[Sequence[int], Arrays], Arrays]
"""Computes a shape in float32 with the numbers that a network rounds to fewer bits rounded."""


def compared_shapes(
    network: RangedNetwork, call: Call, rounded: Rounded | None = None
) -> tuple[ShapeResult, ...]:
    """Compare a compiled network with its original at several shapes of its ranges."""
    original, table, precision = network.symbolic, network.table, network.networks[-1].precision
    return tuple(
        compared_shape(original, table, sizes, call, rounded, precision)
        for sizes in telling_shapes(network)
    )


def compared_shape(
    original: Symbolic,
    table: ShapeTable,
    sizes: Sequence[int],
    call: Call,
    rounded: Rounded | None = None,
    precision: str = "float32",
) -> ShapeResult:
    """Compare a compiled network with its original at one shape.

    Of one that is rounded to fewer bits, compare with what is ``rounded`` likewise; ``precision``
    is the dtype with the fewest digits that it computes in.
    """
    point = table.serving(sizes)
    example = original.example(sizes)
    specs = original.signature(sizes).outputs
    reference = original.reference(sizes)
    expected, name = Expectation.of(reference, example, precision), reference.name
    rounding_error = None
    if rounded is not None:
        arrays = rounded(sizes, example)
        rounding_error = _largest_error(expected.compare(specs, arrays))
        expected, name = Expectation(example, arrays, precision=precision), ROUNDED
    found = call(point, arguments_for(table, sizes, example))
    agreement = expected.compare(specs, _cropped(table, sizes, found))
    return ShapeResult(
        sizes=table.named(sizes),
        served_by=table.named(point.sizes),
        original=name,
        max_abs_error=_largest_error(agreement),
        rounding_error=rounding_error,
        outputs=tuple(agreement),
        fault="; ".join(faults_of(agreement)) or None,
    )


class RoundedShapes:
    """Computes shapes of a network by themselves, in float32 with rounded numbers, each once.

    Parameters
    ----------
    network
        The network, which rounds numbers to fewer bits.
    run
        See :data:`Run`.
    """

    def __init__(self, network: RangedNetwork, run: Run) -> None:
        self._network, self._run = network, run
        self._known: dict[tuple[int, ...], Arrays] = {}

    def __call__(self, sizes: Sequence[int], inputs: Arrays) -> Arrays:
        """Return the outputs for inputs, which are the same for each shape."""
        key = tuple(sizes)
        if key not in self._known:
            self._known[key] = self._computed(key, inputs)
        return self._known[key]

    def _computed(self, sizes: tuple[int, ...], inputs: Arrays) -> Arrays:
        if all(sizes):
            return self._run(self._network.alone(sizes), inputs)
        table = self._network.table  # An extent of 0 cannot be compiled: its point computes it.
        point = table.serving(sizes)
        at_point = self._network.networks[self._network.functions.index(point.function)]
        arguments = arguments_for(table, sizes, inputs)
        return _cropped(table, sizes, self._run(at_point, arguments))


def _cropped(table: ShapeTable, sizes: Sequence[int], outputs: Arrays) -> Arrays:
    pairs = zip(outputs, table.served(sizes).outputs, strict=True)
    return [cropped_to(array, shape) for array, shape in pairs]


def _largest_error(outputs: Sequence[OutputAgreement]) -> float | None:
    return largest_of(output.max_abs_error for output in outputs)


def arguments_for(table: ShapeTable, sizes: Sequence[int], inputs: Arrays) -> list[np.ndarray]:
    """Return all that a point's function takes to compute a shape: inputs padded, true extents."""
    served = table.served(sizes)
    larger = zip(inputs, served.inputs, strict=True)
    return [*(padded_to(array, shape) for array, shape in larger), *served.lengths]


def check_shapes(network: RangedNetwork, compared: Sequence[ShapeResult]) -> None:
    """Raise :class:`DifferentNetworkError` for the first shape that is computed otherwise."""
    for one in compared:
        if one.fault is not None:
            raise DifferentNetworkError(
                f"{network.name} with {one.shape} computes something else than "
                f"{one.original}: {one.fault}; --allow-different tunes it all the same"
            )


def range_result(
    network: RangedNetwork,
    library: Path,
    timed: Mapping[str, Comparison],
    compared: Sequence[ShapeResult],
) -> RangeResult:
    """Put together what came of a network: the figures of its points, by their names."""
    points = []
    names = dict(zip(network.functions, network.networks, strict=True))
    for point in dict.fromkeys(network.table.points):
        one = names[point.function]
        figures = timed[one.name]
        points.append(
            PointResult(
                sizes=network.table.named(point.sizes),
                network=one.name,
                latency_before_s=figures.latency_before_s,
                latency_after_s=figures.latency_after_s,
                pytorch_latency_s=figures.pytorch_latency_s,
            )
        )
    return RangeResult(
        network=network.name,
        library=str(library),
        dims={dim.name: (dim.low, dim.high) for dim in network.table.dims},
        padded=network.table.padded,
        between=_between(network),
        points=tuple(points),
        compared=tuple(compared),
    )


def _between(network: RangedNetwork) -> str:
    """Say how a shape that is no point is computed."""
    padded = ", ".join(network.table.padded)
    said = [f"the next larger point along {padded}, inputs padded"] if padded else []
    if network.unpadded is not None:
        others = [dim.name for dim in network.table.dims if dim.name not in network.table.padded]
        words = "each extent is a point"
        if network.anywhere is not None:
            words = "an extent that is no point has an untuned program, which takes longer"
        said.append(f"along {', '.join(others)} {words} ({network.unpadded})")
    return "; ".join(said)


def with_trials(result: RangeResult, trials: Mapping[str, int]) -> RangeResult:
    """Add the trials of each point, by its name."""
    points = [one.model_copy(update={"trials": trials[one.network]}) for one in result.points]
    return result.model_copy(update={"points": tuple(points)})
