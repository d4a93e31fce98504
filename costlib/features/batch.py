"""The arrays that describe programs, tasks and hardware to a cost model, without TVM."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from costlib.arrays import Float32s, Integers
from costlib.errors import InputError


@dataclass(frozen=True)
class FeatureBatch:
    """`n` programs with `s` buffer stores in all.

    Attributes
    ----------
    stores
        float32 `s x d`: a row for each buffer store, program after program.
    offsets
        int64 `n + 1`: the stores of program `i` are ``stores[offsets[i]:offsets[i + 1]]``.
    context
        float32 `n x c`: what describes task and hardware, and the program as a whole; NaN where
        that is unknown.
    names
        `c` names of the context's columns, of :data:`costlib.features.columns.CONTEXT`; empty if
        they have none, and are known by their places alone.
    """

    stores: Float32s
    offsets: Integers
    context: Float32s
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def split(self) -> list[FeatureBatch]:
        """Return a batch for each program."""
        return [
            FeatureBatch(
                self.stores[first:last],
                np.array([0, last - first]),
                self.context[row : row + 1],
                self.names,
            )
            for row, (first, last) in enumerate(pairwise(self.offsets.tolist()))
        ]

    def known_by(self, names: tuple[str, ...]) -> FeatureBatch:
        """Return the same programs with these columns of context, in this order.

        All of them are there where either side names none.

        Raises
        ------
        InputError
            There is no such column.
        """
        if not names or not self.names or names == self.names:
            return self
        return replace(self, context=self.context[:, _places(self.names, names)], names=names)

    def pooled(self) -> Float32s:
        """Sum, maximum, mean and minimum over each program's stores, their number, the context.

        Returns
        -------
        ndarray
            float32 `n x (4 d + 1 + c)`.
        """
        columns = self.stores.shape[1]
        starts, counts = self.offsets[:-1], np.diff(self.offsets)
        result = np.empty((len(self), 4 * columns + 1 + self.context.shape[1]), "float32")
        total, largest, mean, smallest = (
            result[:, number * columns : (number + 1) * columns] for number in range(4)
        )
        largest[:] = smallest[:] = self.stores[starts]
        total[:] = 0
        for place in range(1, counts.max(initial=1)):
            programs = np.flatnonzero(counts > place)
            stores = self.stores[starts[programs] + place]
            total[programs] += stores
            largest[programs] = np.maximum(largest[programs], stores)
            smallest[programs] = np.minimum(smallest[programs], stores)
        total += self.stores[starts]
        result[:, 4 * columns] = counts
        np.divide(total, result[:, 4 * columns, None], out=mean)
        result[:, 4 * columns + 1 :] = self.context
        return result


@functools.lru_cache
def _places(there: tuple[str, ...], wanted: tuple[str, ...]) -> Integers:
    number = {name: place for place, name in enumerate(there)}
    if missing := [name for name in wanted if name not in number]:
        raise InputError(f"the programs are described without '{missing[0]}'")
    return np.array([number[name] for name in wanted])


def concatenate(
    stores: Sequence[Float32s], context: Float32s, names: tuple[str, ...] = ()
) -> FeatureBatch:
    """Join per-program arrays, each `n_stores x d` with at least one store, into a batch."""
    offsets = np.concatenate([[0], np.cumsum([len(array) for array in stores])]).astype("int64")
    return FeatureBatch(np.concatenate(stores), offsets, context, names)


def select(batch: FeatureBatch, chosen: np.ndarray[Any, Any]) -> FeatureBatch:
    """Take programs: those where ``chosen``, bool `n`, is true, or those it numbers, in its order.

    A program that is numbered twice is there twice.
    """
    rows = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
    starts, counts = batch.offsets[rows], np.diff(batch.offsets)[rows]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype("int64")
    stores = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
    return FeatureBatch(batch.stores[stores], offsets, batch.context[rows], batch.names)


def join(batches: Sequence[FeatureBatch]) -> FeatureBatch:
    """Append batches to one another, with the columns that all of them have."""
    names = batches[0].names
    if any(batch.names != names for batch in batches):
        names = tuple(name for name in names if all(name in one.names for one in batches))
        batches = [batch.known_by(names) for batch in batches]
    shifts = np.cumsum([0, *(batch.offsets[-1] for batch in batches)])
    offsets = [batch.offsets[:-1] + shift for batch, shift in zip(batches, shifts, strict=False)]
    return FeatureBatch(
        np.concatenate([batch.stores for batch in batches]),
        np.concatenate([*offsets, shifts[-1:]]),
        np.concatenate([batch.context for batch in batches]),
        names,
    )
