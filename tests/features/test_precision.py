from __future__ import annotations

import numpy as np

from costlib.features.columns import PRECISION
from costlib.features.precision import precision
from costlib.hardware import Hardware
from costlib.tvm_compat import te, tvm
from costlib.workloads import Task, extract_tasks
from costlib.workloads.task import weight_arguments


def told(arguments: object, mod: object) -> dict[str, float]:
    values = precision(arguments, mod)  # type: ignore[arg-type]
    return dict(zip(PRECISION, values.tolist(), strict=True))


def test_a_layer_has_a_weight_and_a_product_of_two_inputs_none(dense: Task, matmul: Task) -> None:
    assert told(dense.arguments, dense.mod) == {
        **{"input_bits": 32, "input_float": 1, "weight_bits": 32, "weight_float": 1},
        **{"sum_bits": 32, "sum_float": 1},
    }
    found = told(matmul.arguments, matmul.mod)
    assert (found["weight_bits"], found["weight_float"]) == (0, 0)


def test_sums_of_another_type() -> None:
    x, w = te.placeholder((64, 32), "uint8"), te.placeholder((32, 16), "int8")
    k = te.reduce_axis((0, 32))
    product = te.compute(
        (64, 16), lambda i, j: te.sum(x[i, k].astype("int32") * w[k, j].astype("int32"), axis=k)
    )
    out = te.compute((64, 16), lambda i, j: product[i, j].astype("float16"))
    kernel = te.create_prim_func([x, w, out]).with_attr("layout_free_buffers", [1])
    mod = tvm.IRModule({"main": kernel})
    assert weight_arguments(mod) == {1}
    arguments = (("uint8", (64, 32)), ("int8", (32, 16)), ("float16", (64, 16)))
    assert told(arguments, mod) == {
        **{"input_bits": 8, "input_float": 0, "weight_bits": 8, "weight_float": 0},
        **{"sum_bits": 32, "sum_float": 0},
    }


def test_without_a_reduction_nothing_is_summed(hardware: Hardware) -> None:
    (task,) = extract_tasks("gelu 8 8", hardware)
    found = told(task.arguments, task.mod)
    assert (found["input_bits"], found["sum_bits"], found["sum_float"]) == (32, 0, 0)


def test_a_foreign_log_tells_inputs_alone() -> None:
    found = precision([("float16", (4, 4)), ("float32", (8, 8)), ("float32", (4, 4))], None)
    np.testing.assert_array_equal(found, [32, 1, np.nan, np.nan, np.nan, np.nan])
