"""Matrices transposed in registers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from costlib.hardware import Hardware
from costlib.tvm_compat import tirx, tvm
from costlib.workloads.transposition import transposition

FEW = settings(deadline=None, max_examples=12)


@FEW
@given(
    st.lists(st.integers(1, 3), max_size=2),
    st.integers(1, 40),
    st.integers(1, 3),
    st.sampled_from([4, 8, 16]),
)
def test_columns_become_rows(batch: list[int], rows: int, squares: int, lanes: int) -> None:
    columns, filled = squares * lanes, -(-rows // lanes) * lanes
    shapes = (*batch, rows, columns), (*batch, columns, filled)
    source, target = (tirx.decl_buffer(shape, "float32", layout=None) for shape in shapes)
    kernel = transposition(source, target, rows, lanes, list)
    mod = tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")})
    library = tvm.build(mod, target=Hardware.local(num_cores=2).tvm_target())
    x = np.random.default_rng(0).standard_normal(shapes[0]).astype("float32")
    y = tvm.runtime.tensor(np.zeros(shapes[1], "float32"))
    library["main"](tvm.runtime.tensor(x), y)
    expected = x.swapaxes(-1, -2)
    np.testing.assert_array_equal(y.numpy()[..., :rows], expected)
    last = np.repeat(expected[..., -1:], filled - rows, -1)
    np.testing.assert_array_equal(y.numpy()[..., rows:], last)
