"""A loop nest: extents, kinds of loops, and what each access touches. Knows nothing of TVM."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from costlib.arrays import Floats, Integers
from costlib.hardware import Hardware

LINE_BYTES = 64
LANES = 32
"""Threads of a GPU's warp."""

LINE_CYCLES = (3.0, 10.0, 30.0)
"""About what it takes to fetch a line from beyond the first, second and third cache."""

CACHE_WAYS = (8, 8, 16)
"""About how many lines of each cache share a set."""

_REGISTERS = {"aarch64": 32}
_OTHER_REGISTERS = 16
"""Vector registers: NEON's, and those of an x86-64 core without AVX-512."""

UNROLLED_ANYWAY = (16, 64)
"""Statements that the compiler may unroll without being asked."""

CALL_OPERATIONS = 8
"""About how many operations an exponential is worth."""

PARALLEL, VECTORIZED, UNROLLED = 1, 2, 3
"""Kinds of loops, as TVM numbers them; those of GPU threads count as parallel."""


@dataclass(frozen=True)
class Access:
    """A buffer that a nest of `l` loops reads or writes at an index.

    Attributes
    ----------
    elements, lines
        float64 `l + 1`: how many elements and cache lines the loops from this one inwards touch,
        everything outside it standing still; the last is a single one.
    strides
        int64 `l`: how many elements a step of each loop moves by.
    steps, shape
        int64 `dimensions x l`: how far in each dimension; the buffer's extents.
    element_bytes
        Of an element.
    packed
        Whether it is a constant weight, which is laid out in the order that it is read.
    scope
        Which memory it lies in, as TVM calls it: ``"global"``, ``"shared"``, ...
    lanes
        int64 :data:`LANES`: the element that each thread of a warp begins at, on a GPU; empty
        elsewhere.
    """

    elements: Floats
    lines: Floats
    strides: Integers
    steps: Integers
    shape: tuple[int, ...]
    element_bytes: int
    packed: bool
    scope: str = "global"
    lanes: Integers = field(default_factory=lambda: np.empty(0, "int64"))


@dataclass(frozen=True)
class LoopNest:
    """A store within `l` loops, those of one iteration left out; outermost first.

    Attributes
    ----------
    block
        What the program calls the statement.
    extents, kinds
        int64 `l`: iterations, and how they run.
    threads
        What each loop is bound to on a GPU, such as ``"threadIdx.x"``; ``""`` for none.
    unroll_steps
        Up to how many statements the code generator is asked to unroll.
    arithmetic, calls, branches
        Floating-point operations, calls of functions and conditions in each iteration.
    store, loads
        What it writes, and what it reads.
    """

    block: str
    extents: Integers
    kinds: Integers
    unroll_steps: int
    arithmetic: int
    calls: int
    branches: int
    store: Access
    loads: tuple[Access, ...]
    threads: tuple[str, ...] = ()

    @property
    def accumulates(self) -> bool:
        """Whether the first element that it reads is the one that it writes."""
        return bool(self.loads) and np.array_equal(self.loads[0].strides, self.store.strides)

    @property
    def work(self) -> float:
        """About how many instructions an iteration is."""
        return max(1.0, self.arithmetic + CALL_OPERATIONS * self.calls) / 2

    @property
    def accesses(self) -> tuple[Access, ...]:
        """All of them, the store first."""
        return (self.store, *self.loads)


def vector_registers(hardware: Hardware) -> int:
    """Return how many vector registers a core has, or is taken to have."""
    return _REGISTERS.get(hardware.family, _OTHER_REGISTERS)


def cache_sizes(hardware: Hardware) -> list[int]:
    """Return the bytes of the caches of :data:`LINE_CYCLES`; a missing one is as the last."""
    sizes = list(hardware.cache_bytes)[: len(LINE_CYCLES)] or [1]
    return sizes + [sizes[-1]] * (len(LINE_CYCLES) - len(sizes))


def crowding(lines: Floats, steps_bytes: Integers, extents: Integers, way_bytes: int) -> Floats:
    """Return how many lines of an access share a set of a cache, at least 1.

    Lines that are a multiple of ``way_bytes`` apart do: with strides of a power of two a few sets
    must hold them all, and a cache throws out what it has room for.

    Parameters
    ----------
    lines
        float64 `... x n x (l + 1)`: cache lines that the loops from one inwards touch, of `n`
        programs.
    steps_bytes
        int64 `... x n x l`: how far a step of each loop moves.
    extents
        int64 `n x l`: iterations of each loop.
    way_bytes
        Size of the cache divided by its associativity.

    Returns
    -------
    ndarray
        float64 `... x n x (l + 1)`, counted as ``lines`` are.
    """
    way_bytes = max(way_bytes, LINE_BYTES)
    steps = np.abs(steps_bytes)
    apart = extents * np.minimum(steps / LINE_BYTES, 1)
    distinct = np.maximum(1, np.minimum(apart, way_bytes / np.gcd(steps, way_bytes)))
    sets = np.ones_like(lines)
    sets[..., :-1] = np.cumprod(distinct[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray(np.maximum(lines / np.minimum(sets, way_bytes / LINE_BYTES), 1))
