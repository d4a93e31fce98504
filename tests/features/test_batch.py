from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from costlib.errors import InputError
from costlib.features.batch import FeatureBatch, concatenate, join, select

COLUMNS = 3
STORES = st.lists(
    hnp.arrays(
        "float32",
        st.tuples(st.integers(1, 4), st.just(COLUMNS)),
        elements=st.floats(-100, 100, width=32),
    ),
    min_size=1,
    max_size=6,
)


def batch_of(stores: list[np.ndarray]) -> FeatureBatch:
    context = np.arange(len(stores), dtype="float32")[:, None]
    return concatenate(stores, context)


@given(STORES)
def test_pooling_is_per_program(stores: list[np.ndarray]) -> None:
    pooled = batch_of(stores).pooled()
    assert pooled.shape == (len(stores), 4 * COLUMNS + 2)
    for row, array, number in zip(pooled, stores, range(len(stores)), strict=True):
        expected = [array.sum(0), array.max(0), array.mean(0), array.min(0), [len(array)], [number]]
        np.testing.assert_allclose(row, np.concatenate(expected), rtol=1e-4, atol=1e-3)


@given(STORES, STORES)
def test_joined_batches_pool_like_their_parts(a: list[np.ndarray], b: list[np.ndarray]) -> None:
    first, second = batch_of(a), batch_of(b)
    joined = join([first, second])
    assert len(joined) == len(a) + len(b)
    np.testing.assert_array_equal(joined.pooled(), np.vstack([first.pooled(), second.pooled()]))


def test_some_programs_of_a_batch() -> None:
    rng = np.random.default_rng(0)
    stores = [rng.normal(size=(n, 3)).astype("float32") for n in (2, 1, 4, 3)]
    context = rng.normal(size=(4, 2)).astype("float32")
    chosen = np.array([True, False, True, False])
    some = select(concatenate(stores, context), chosen)
    expected = concatenate([stores[0], stores[2]], context[[0, 2]])
    np.testing.assert_array_equal(some.stores, expected.stores)
    np.testing.assert_array_equal(some.offsets, expected.offsets)
    np.testing.assert_array_equal(some.context, expected.context)
    assert len(select(some, np.zeros(2, bool))) == 0
    turned = select(some, np.array([1, 0, 1]))
    np.testing.assert_array_equal(turned.stores, np.concatenate([stores[2], stores[0], stores[2]]))
    np.testing.assert_array_equal(turned.offsets, [0, 4, 6, 10])
    np.testing.assert_array_equal(turned.context, context[[2, 0, 2]])


def test_columns_by_name() -> None:
    context = np.arange(6, dtype="float32").reshape(2, 3)
    batch = concatenate([np.zeros((1, 2), "float32")] * 2, context, ("a", "b", "c"))
    some = batch.known_by(("c", "a"))
    assert some.names == ("c", "a")
    np.testing.assert_array_equal(some.context, context[:, [2, 0]])
    assert batch.known_by(()) is batch
    assert batch.known_by(("a", "b", "c")) is batch
    with pytest.raises(InputError, match="described without 'd'"):
        batch.known_by(("a", "d"))
    for part in (select(batch, np.array([1])), batch.split()[1]):
        np.testing.assert_array_equal(part.known_by(("b",)).context, [[4]])
    both = join([batch, some])
    assert both.names == ("a", "c")
    np.testing.assert_array_equal(both.context, np.tile(context[:, [0, 2]], (2, 1)))
