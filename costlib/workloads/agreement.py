"""Whether a network computes what its original computes, and inputs that can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from costlib.arrays import Bools
from costlib.frozen import Frozen
from costlib.workloads.network import Network, Reference
from costlib.workloads.signature import TensorSpec

Arrays = Sequence[np.ndarray]

_TOLERANCES = {
    **{"float64": 1e-8, "float32": 2e-4},
    **{"tf32": 5e-3, "float16": 5e-3, "bfloat16": 3e-2},
}
"""Difference allowed, as a share of the largest element."""

_OF_INTEGERS = 3 / 128
"""The same of numbers that were rounded to 8 bits: a few steps."""

MADE_UP = ("an input that is NaN", "a row of -inf")
"""Inputs of what no network is usually given."""

_FAR_MEAN, _FAR_SPREAD = 100.0, 0.01
_NUDGES = 2
_NUDGE_SHARE = 16
"""A difference that many times as large as a nudge of the inputs makes is still rounding."""

_FARTHER = (4, 4, 4, 4, 16, 16, 16, 16, 64, 64, 64, 64)
"""How many times as far as a nudge inputs are moved to find where a close decision falls."""

_SPARED_SHARE = 0.25
"""Of elements that nudges may move less than the others without being held to it."""


class OutputAgreement(Frozen):
    """An output beside the original's.

    Attributes
    ----------
    name, dtype, shape
        Of the output; where dtype or shape differ, ``fault`` says what they should be.
    max_abs_error, max_abs_output
        Largest difference, and largest element of the original; ``None`` where they cannot be
        compared.
    fault
        What is wrong; ``None`` if nothing is.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs_error: float | None = None
    max_abs_output: float | None = None
    fault: str | None = None


def compare_outputs(
    specs: Sequence[TensorSpec],
    actual: Arrays,
    expected: Arrays,
    nudged: Sequence[Arrays] = (),
    *,
    still: Arrays | None = None,
    nan_may_spread: bool = False,
    precision: str = "float32",
    share: float = 0.0,
) -> list[OutputAgreement]:
    """Compare outputs with the original's, on dtype and shape first, then on NaNs, then on values.

    Parameters
    ----------
    specs
        The outputs' names.
    actual, expected
        The outputs and the original's.
    nudged
        The original's outputs for inputs that differ by rounding: what changes there is not
        held against an output.
    still
        What ``nudged`` would be without a nudge; ``expected`` by default.
    nan_may_spread
        Whether an output may be NaN where the original is not, or infinite where it is NaN: 0 times
        either is NaN, and whether what counts for nothing is multiplied by 0 or left out is a
        matter of taste. Where a NaN
        is sorted to, and other integers that come of one, are, too.
    precision
        The dtype that is computed in, if that has fewer digits than an output.
    share
        A difference that is allowed between floats whatever the dtypes, as a share of the largest
        element.
    """
    found = []
    for number, (spec, ours, theirs) in enumerate(zip(specs, actual, expected, strict=False)):
        others = [outputs[number] for outputs in nudged]
        centre = theirs if still is None else still[number]
        tolerance = 0.0
        if (dtype := ours.dtype.name) in _TOLERANCES:
            tolerance = max(_TOLERANCES[dtype], _TOLERANCES.get(precision, _OF_INTEGERS), share)
        found.append(_compared(spec.name, ours, theirs, others, centre, nan_may_spread, tolerance))
    if len(actual) != len(expected):
        fault = f"{len(actual)} outputs, where the original has {len(expected)}"
        found.append(OutputAgreement(name="outputs", dtype="", shape=(), fault=fault))
    return found


def _compared(
    name: str,
    ours: np.ndarray,
    theirs: np.ndarray,
    nudged: Arrays,
    still: np.ndarray,
    nan_may_spread: bool,
    tolerance: float,
) -> OutputAgreement:
    dtype, shape = ours.dtype.name, ours.shape
    fault = None
    if dtype != theirs.dtype.name:
        fault = f"it is {dtype}, the original's {theirs.dtype.name}"
    elif shape != theirs.shape:
        fault = f"its shape is {list(shape)}, the original's {list(theirs.shape)}"
    if fault is not None:
        return OutputAgreement(name=name, dtype=dtype, shape=shape, fault=fault)
    exact = dtype not in _TOLERANCES
    a, b, centre = (x.astype("float64") for x in (ours, theirs, still))
    apart = np.zeros(shape)
    unsure = np.zeros(shape, bool)
    for other in nudged:
        with np.errstate(invalid="ignore"):
            step = np.abs(other.astype("float64") - centre)
        unsure |= np.isnan(other.astype("float64")) != np.isnan(centre)
        apart = np.fmax(apart, step)
    if exact:
        unsure |= apart > 0
    elif (steps := apart[np.isfinite(apart)]).size:
        # Two nudges may both spare an element that rounding moves as it does all others.
        apart = np.fmax(apart, np.quantile(steps, _SPARED_SHARE, method="lower"))
    if nan_may_spread:
        unsure |= np.isnan(a) | (np.isinf(a) & np.isnan(b)) | (exact and dtype != "bool")
    return _valued(name, dtype, a, b, _NUDGE_SHARE * apart, unsure, tolerance)


def _valued(
    name: str,
    dtype: str,
    a: np.ndarray,
    b: np.ndarray,
    slack: np.ndarray,
    unsure: Bools,
    tolerance: float,
) -> OutputAgreement:
    lost = np.isnan(a) != np.isnan(b)
    finite = np.isfinite(a) & np.isfinite(b)
    with np.errstate(invalid="ignore"):
        error = np.where(a == b, 0, np.abs(a - b))
    scale = float(np.max(np.abs(b), initial=0, where=np.isfinite(b)))
    allowed = tolerance * scale + np.where(np.isfinite(slack), slack, np.inf)
    infinite = ~finite & ~np.isnan(a) & ~np.isnan(b) & (a != b)
    wrong = ((finite & (error > allowed)) | infinite | lost) & ~unsure
    largest = float(np.max(error, initial=0, where=finite))
    fault = None
    if wrong.any():
        place = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        share = int(wrong.sum())
        first = f"{a[place]:.6g} where the original has {b[place]:.6g}"
        fault = f"{share} of {wrong.size} elements differ, the first at {list(place)}: {first}"
    return OutputAgreement(
        name=name,
        dtype=dtype,
        shape=a.shape,
        max_abs_error=largest,
        max_abs_output=scale,
        fault=fault,
    )


@dataclass(frozen=True)
class Expectation:
    """What outputs for some inputs are held against.

    Attributes
    ----------
    inputs, expected
        The inputs and the original's outputs for them.
    nudged
        The original's outputs for inputs that are moved by about a rounding error.
    reference
        The original, if there is one.
    precision
        The dtype that is computed in, see :attr:`costlib.workloads.network.Network.precision`.
    share
        A difference that is allowed in any case, see :func:`compare_outputs`.
    """

    inputs: Arrays
    expected: Arrays
    nudged: Sequence[Arrays] = ()
    reference: Reference | None = None
    precision: str = "float32"
    share: float = 0.0

    @classmethod
    def of(cls, reference: Reference, inputs: Arrays, precision: str = "float32") -> Expectation:
        """Ask an original; errors are its own."""
        nudged = nudged_outputs(reference, inputs)
        return cls(inputs, reference(inputs), nudged, reference, precision)

    def compare(
        self, specs: Sequence[TensorSpec], actual: Arrays, *, nan_may_spread: bool = False
    ) -> list[OutputAgreement]:
        """Compare as :func:`compare_outputs` does; close decisions may fall either way.

        The best of numbers that are nearly equal may be another one where sums are rounded
        otherwise. Outputs that differ are right if all of them together agree with what the
        original makes of inputs nearby.
        """

        def compared(expected: Arrays) -> list[OutputAgreement]:
            return compare_outputs(
                specs,
                actual,
                expected,
                self.nudged,
                still=self.expected,
                nan_may_spread=nan_may_spread,
                precision=self.precision,
                share=self.share,
            )

        first = compared(self.expected)
        if self.reference is None or not _is_faulty(first) or not _is_alike(actual, self.expected):
            return first
        rng = np.random.default_rng(0)
        for times in _FARTHER:
            nearby = compared(self.reference([_nudged(x, rng, times) for x in self.inputs]))
            if not _is_faulty(nearby):
                return nearby
        return first


def _is_faulty(outputs: Sequence[OutputAgreement]) -> bool:
    return any(output.fault for output in outputs)


def _is_alike(ours: Arrays, theirs: Arrays) -> bool:
    return [(x.dtype, x.shape) for x in ours] == [(x.dtype, x.shape) for x in theirs]


def nudged_outputs(reference: Reference, inputs: Arrays, seed: int = 0) -> list[list[np.ndarray]]:
    """Return an original's outputs for inputs that are moved by about a rounding error."""
    rng = np.random.default_rng(seed)
    return [reference([_nudged(array, rng) for array in inputs]) for _ in range(_NUDGES)]


def _nudged(array: np.ndarray, rng: np.random.Generator, times: float = 1) -> np.ndarray:
    if array.dtype.name not in _TOLERANCES:
        return array
    share = np.finfo(array.dtype).eps if array.dtype.name != "bfloat16" else 2.0**-8
    factor = 1 + 2 * times * float(share) * rng.uniform(-1, 1, array.shape)
    return (array.astype("float64") * factor).astype(array.dtype)


def telling_inputs(network: Network, seed: int = 0) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Draw inputs that bring different faults to light, each with a name.

    Parameters
    ----------
    network
        The network; integers stay within the range of those that it came with.
    seed
        The same seed gives the same inputs.
    """
    if network.examples:
        yield "the inputs that came with it", [np.array(array) for array in network.examples]
    rng = np.random.default_rng(seed)
    drawn = [
        _like(network.examples[i], rng) if network.examples else spec.random(rng)
        for i, spec in enumerate(network.inputs)
    ]
    yield "random inputs", drawn
    floats = [i for i, a in enumerate(drawn) if a.dtype.name in _TOLERANCES and a.size]
    if not floats:
        return
    far = [_FAR_MEAN + _FAR_SPREAD * rng.standard_normal(array.shape) for array in drawn]
    yield "inputs far from zero", _changed(drawn, floats, far.__getitem__)
    for name, value in zip(MADE_UP, (np.nan, -np.inf), strict=True):
        if np.isnan(value) and network.precision == "int8":
            continue  # No integer stands for it, and each implementation takes another one.
        yield name, _changed(drawn, floats[:1], partial(_set_row, drawn, value))


def _like(example: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw an array like another one: its numbers' range if they are integers."""
    if example.dtype.name in _TOLERANCES:
        return rng.standard_normal(example.shape).astype(example.dtype)
    if example.dtype.kind == "b":
        return rng.integers(0, 2, example.shape).astype(bool)
    low, high = (int(f(example)) if example.size else 0 for f in (np.min, np.max))
    return rng.integers(low, high, example.shape, dtype="int64", endpoint=True).astype(
        example.dtype
    )


def _set_row(arrays: Arrays, value: float, number: int) -> np.ndarray:
    """Set the first row, or the first element if that is all there is, or it is NaN."""
    changed = np.array(arrays[number], "float64")
    rows = changed.reshape(-1, changed.shape[-1] if changed.ndim else 1)
    if np.isnan(value):
        rows[0, :1] = value
    else:
        rows[0] = value
    return changed


def _changed(
    arrays: Arrays, places: Sequence[int], of: Callable[[int], np.ndarray]
) -> list[np.ndarray]:
    """Replace some of the inputs, of the same dtype."""
    return [of(i).astype(a.dtype) if i in places else a for i, a in enumerate(arrays)]


def largest_of(values: Iterable[float | None]) -> float | None:
    """Return the largest of those that are known; ``None`` if none is."""
    return max((value for value in values if value is not None), default=None)
