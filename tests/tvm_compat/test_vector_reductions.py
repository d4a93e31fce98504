"""Sums and maxima in lanes are what they are one after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.tvm_compat import te, tirx, topi, tvm

TARGET = {"kind": "llvm", "num-cores": 1}
ROWS = 3


def built(inputs, output):
    module = tvm.IRModule({"main": te.create_prim_func([*inputs, output])})
    return tvm.build(module, target=tvm.target.Target(TARGET))


def called(library, *arrays, shape):
    result = tvm.runtime.empty(shape, str(arrays[0].dtype))
    library["main"](*(tvm.runtime.tensor(a) for a in arrays), result)
    return result.numpy()


def is_in_lanes(library):
    """Say whether a buffer of lanes is in its code."""
    return "lanes" in library.inspect_source("ll")


def reduced(reduce, extent, dtype="float32", value=lambda x: x):
    x = te.placeholder((ROWS, extent), dtype, name="x")
    k = te.reduce_axis((0, extent), name="k")
    return built([x], te.compute((ROWS,), lambda i: reduce(value(x[i, k]), k)))


@given(extent=st.integers(1, 300), seed=st.integers(0, 9))
def test_a_sum_of_any_length(extent, seed):
    x = np.random.default_rng(seed).integers(-9, 9, (ROWS, extent)).astype("float32")
    library = reduced(te.sum, extent)
    np.testing.assert_array_equal(called(library, x, shape=(ROWS,)), x.sum(1))
    assert is_in_lanes(library) == (extent >= 32)


@pytest.mark.parametrize(("ours", "theirs"), [(te.max, np.max), (te.min, np.min)])
@pytest.mark.parametrize("place", [0, 17, 63, 64, 99])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_extremes_keep_what_is_special(ours, theirs, place, special):
    x = np.random.default_rng(0).normal(size=(ROWS, 100)).astype("float32")
    x[1, place] = special
    library = reduced(ours, 100)
    assert is_in_lanes(library)
    np.testing.assert_array_equal(called(library, x, shape=(ROWS,)), theirs(x, 1))


def test_doubles_have_half_as_many_lanes():
    x = np.arange(ROWS * 17, dtype="float64").reshape(ROWS, 17)
    library = reduced(te.sum, 17, "float64")
    assert is_in_lanes(library)
    np.testing.assert_array_equal(called(library, x, shape=(ROWS,)), x.sum(1))


def test_a_product_of_rows():
    a, b = (te.placeholder((n, 70), name=name) for n, name in ((ROWS, "a"), (5, "b")))
    k = te.reduce_axis((0, 70), name="k")
    library = built([a, b], te.compute((ROWS, 5), lambda i, j: te.sum(a[i, k] * b[j, k], k)))
    assert is_in_lanes(library)
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(n, 70)).astype("float32") for n in (ROWS, 5))
    np.testing.assert_allclose(called(library, x, y, shape=(ROWS, 5)), x @ y.T, rtol=1e-5)


def test_a_softmax():
    x = te.placeholder((ROWS, 197), name="x")
    library = built([x], topi.nn.softmax(x))
    assert is_in_lanes(library)
    values = 9 * np.random.default_rng(0).normal(size=(ROWS, 197)).astype("float32")
    powers = np.exp(values - values.max(1, keepdims=True))
    found = called(library, values, shape=(ROWS, 197))
    np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5)


def test_what_is_no_reduction_over_neighbours_stays_as_it_is():
    x = te.placeholder((100, ROWS), name="x")
    k = te.reduce_axis((0, 100), name="k")
    of_columns = built([x], te.compute((ROWS,), lambda i: te.sum(x[k, i], k)))
    assert not is_in_lanes(of_columns)

    def chosen(value):
        return tirx.if_then_else(value > 0, value, value * 2)

    assert not is_in_lanes(reduced(te.sum, 100, value=chosen))
    assert not is_in_lanes(reduced(te.sum, 100, "int32"))
