"""Kinds of GPU programs, between which there is often no way by small steps. No TVM."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from costlib.arrays import Integers
from costlib.space.bindings import BLOCK, THREAD, Bindings

_WARP = 32

_THREADS = (64, 128, 256, 512)
_WORK = (4, 16, 64)
"""Elements that a thread computes; its sums stay in registers up to about the last."""

_DEPTH = (4, 16)
"""Steps of a reduction between two copies to shared memory."""

_WIDTH = (2, 4)
"""Elements that a thread copies at once."""

_STEPS = (_THREADS, _WORK, _DEPTH, _WIDTH)


def gpu_niches(bindings: Bindings, decided: Mapping[int, Integers], count: int) -> Integers:
    """Number the kinds of `n` programs of a sketch, of which there are ``count``; int64 `n`.

    A kind says how many threads a block has, how much each computes, how deep a tile of a reduction
    is that lies in shared memory, and how wide it is copied there.

    Parameters
    ----------
    bindings
        What the sketch binds.
    decided
        By instruction, int64 `n x parts` of those that draw tile sizes, and int64 `n`, the numbers
        themselves, of :attr:`Bindings.threads` and :attr:`Bindings.copies`.
    """
    threads = np.full(count, _WARP if bindings.warps else 1, "int64")
    work, depth, width = (np.ones(count, "int64") for _ in range(3))
    for index, parts in bindings.tiles.items():
        if index not in decided:
            continue
        tile = decided[index]
        if not any(parts):  # Of a reduction: the first part is between two copies.
            depth *= tile[:, 1:].prod(1)
            continue
        for part, tag in enumerate(parts):
            if tag == THREAD:
                threads *= tile[:, part]
            elif tag != BLOCK:
                work *= tile[:, part]
    for index in bindings.threads:
        if index in decided:
            threads = np.maximum(threads, decided[index])
    for index in bindings.copies:
        if index in decided:
            width = np.maximum(width, decided[index])
    numbers = np.zeros(count, "int64")
    for values, steps in zip((threads, work, depth, width), _STEPS, strict=True):
        numbers = (1 + len(steps)) * numbers + np.digitize(values, steps)
    return numbers
