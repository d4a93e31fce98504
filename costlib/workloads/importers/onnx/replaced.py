"""What of TVM's ONNX importer is replaced, and why: a small model for each fault.

All of it is replaced, since its faults are in how it looks at a graph (shapes that are not
constants, dtypes, versions of operators) as much as in single converters. The tests run each
model through both importers; they fail when TVM's computes one of them rightly, so that the
table shrinks with its releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

RNG_SEED = 5


@dataclass(frozen=True)
class Fault:
    """Something that TVM's importer does wrongly.

    Attributes
    ----------
    name
        Of the case.
    why
        What is wrong with it in TVM's importer.
    operator
        Of the only node.
    inputs
        Arrays that the model is called with; None is an input left out.
    constants
        Inputs behind them that are constants of the model.
    attributes
        Of the node.
    opset, outputs
        Of the model.
    """

    name: str
    why: str
    operator: str
    inputs: tuple[np.ndarray | None, ...]
    constants: tuple[np.ndarray | None, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    opset: int = 18
    outputs: int = 1

    def feeds(self) -> list[np.ndarray]:
        """Return the arrays that the model is called with."""
        return [array for array in self.inputs if array is not None]

    def model(self, prefix: str = "") -> onnx.ModelProto:
        """Make the model."""
        names, inputs, weights = [], [], []
        for i, array in enumerate([*self.inputs, *self.constants]):
            name = f"{prefix}x{i}"
            names.append("" if array is None else name)
            if array is None:
                continue
            if i < len(self.inputs):
                dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
                inputs.append(helper.make_tensor_value_info(name, dtype, array.shape))
            else:
                weights.append(numpy_helper.from_array(array, name))
        outputs = [f"{prefix}y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.operator, names, outputs, **self.attributes)
        declared = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph([node], "graph", inputs, declared, weights)
        opset = helper.make_opsetid("", self.opset)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def _floats(*shape: int, dtype: str = "float32", mean: float = 0.0) -> np.ndarray:
    values = np.random.default_rng(RNG_SEED).standard_normal(shape) + mean
    return values.astype(dtype)


def _i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def _f32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


_NAN = _f32(-2, np.nan, -0.5, 0, 1, 3)
_WIDE = _floats(1, 2, 5, 7)
_PIXELS = _floats(1, 1, 4, 4)

_Cases = Callable[[], list[Fault]]


def faults() -> list[Fault]:
    """Return the table."""
    return [*_elementwise(), *_shapes(), *_indices(), *_windows(), *_resizes(), *_layers()]


def _elementwise() -> list[Fault]:
    return [
        Fault("relu_nan", "NaN becomes 0", "Relu", (_NAN,)),
        Fault("sign_nan", "NaN becomes 0", "Sign", (_NAN,)),
        Fault("clip_nan", "NaN becomes the bound", "Clip", (_NAN,), (_f32(-1)[0], _f32(1)[0])),
        Fault("max_nan", "NaN is lost", "Max", (_f32(1, 1, 1, 1, 1, 1), _NAN)),
        Fault("max_int", "refused", "Max", (_i64(1, -2), _i64(0, 4))),
        Fault("selu", "constants of low precision", "Selu", (_floats(3, 4),)),
        Fault("pow_int_exponent", "dtypes differ", "Pow", (_floats(3, 4), _i64(2, 3, -1, 0))),
        Fault("pow_int", "computed by floats", "Pow", (_i64(3, -3, 10), _i64(33, 21, 18))),
        Fault("div_int", "rounds down", "Div", (_i64(-7, 7, -7), _i64(2, -2, -2))),
        Fault("mod_fmod", "sign of the divisor", "Mod", (_i64(-7, 7), _i64(3, -3)), (), {"fmod": 1}),
        Fault("mod_negative", "sign of the dividend", "Mod", (_i64(-7, 7), _i64(3, -3))),
        Fault("celu", "lacking", "Celu", (_floats(3, 4),), (), {"alpha": 0.7}),
        Fault("swish", "lacking", "Swish", (_floats(3, 4),), (), {"alpha": 0.7}, 24),
        Fault(
            "is_inf",
            "says nothing of signs",
            "IsInf",
            (_f32(np.inf, -np.inf, 1),),
            (),
            {"detect_positive": 0},
        ),
        Fault("cast_bool", "NaN, or fractions, are false", "Cast", (_NAN,), (), {"to": 9}),
        Fault("shrink", "refused", "Shrink", (_floats(3, 4),), (), {"lambd": 0.3, "bias": 0.1}),
        Fault("softplus", "overflows", "Softplus", (_f32(-100, 0, 100),)),
        Fault("leaky_relu", "refused", "LeakyRelu", (_floats(3, dtype="float64"),)),
    ]


def _shapes() -> list[Fault]:
    return [
        Fault("softmax_11", "over one axis", "Softmax", (_floats(2, 3, 4),), (), {"axis": 1}, 11),
        Fault("hardmax_11", "over one axis", "Hardmax", (_floats(2, 3, 4),), (), {"axis": 1}, 11),
        Fault(
            "split_uneven", "uneven pieces", "Split", (_floats(7, 2),), (), {"num_outputs": 3}, 18, 3
        ),
        Fault(
            "slice_back", "negative steps", "Slice", (_floats(4, 5),),
            (_i64(-1, 4), _i64(-9, 0), _i64(0, 1), _i64(-1, -2)),
        ),
        Fault("pad_wrap", "lacking", "Pad", (_floats(3, 4),), (_i64(0, 1, 0, 2),), {"mode": "wrap"}, 19),
        Fault("pad_negative", "wrong", "Pad", (_floats(3, 4),), (_i64(0, -1, 1, -1),)),
        Fault("pad_int", "floats", "Pad", (_i64(1, 2),), (_i64(1, 1), np.array(-(2**60) - 1))),
        Fault("trilu_k", "wrong", "Trilu", (_floats(3, 4),), (np.array(1),), {"upper": 0}),
        Fault("reverse", "lacking", "ReverseSequence", (_floats(4, 3), _i64(1, 2, 4))),
        Fault("einsum", "wrong", "Einsum", (_floats(2, 3, 4), _floats(2, 4, 5)), (),
              {"equation": "...ij,...jk"}),
        Fault("reduce_max_inf", "the lowest number", "ReduceMax", (_f32(-np.inf, -np.inf),)),
        Fault("reduce_max_nan", "NaN is lost", "ReduceMax", (_NAN,)),
        Fault("reduce_all", "refused", "ReduceSum", (_floats(3, 4),), (_i64(),),
              {"noop_with_empty_axes": 1, "keepdims": 0}),
        Fault("reduce_mean_int", "rounds", "ReduceMean", (_i64(-3, 0, 1, -5),), (_i64(0),)),
        Fault("log_sum_exp", "overflows", "ReduceLogSumExp", (_f32(100, 101, 1000),)),
    ]


def _indices() -> list[Fault]:
    return [
        Fault("gather", "negative indices", "Gather", (_floats(4, 3), _i64(-1, 1, -4))),
        Fault("gather_elements", "negative indices", "GatherElements",
              (_floats(3, 4), np.array([[-1, 0], [2, -4]])), (), {"axis": 1}),
        Fault("gather_nd", "negative indices", "GatherND", (_floats(3, 4), np.array([[-1, -2]]))),
        Fault("scatter_elements", "negative indices", "ScatterElements",
              (_floats(3, 4), np.array([[-1, -3]]), _f32([9, 8])), (), {"axis": 1}),
        Fault("scatter_nd", "negative indices", "ScatterND",
              (_floats(3, 4), np.array([[-1, -2], [0, 1]]), _f32(7, 8)), (), {"reduction": "add"}),
        Fault("one_hot", "negative indices", "OneHot", (_i64(-1, 2, 5),), (np.array(4), _f32(2, 5))),
        Fault("arg_max_last", "wrong", "ArgMax", (_f32([1, 3, 3], [2, 2, 2]),), (),
              {"axis": 1, "select_last_index": 1}),
        Fault("cum_sum", "wrong", "CumSum", (_floats(3, 4),), (np.array(-1),),
              {"exclusive": 1, "reverse": 1}),
    ]


def _windows() -> list[Fault]:
    kernel, grouped = _floats(2, 3, 3, 3), _floats(4, 2, 3, 3)
    return [
        Fault("conv_same", "even kernels", "Conv", (_WIDE,), (_floats(3, 2, 2, 4),),
              {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
        Fault("conv_half", "sums in half precision", "Conv", (_floats(1, 64, 3, 3, dtype="float16"),),
              (_floats(2, 64, 3, 3, dtype="float16"),)),
        Fault("transpose_shape", "another size", "ConvTranspose", (_WIDE,), (kernel,),
              {"strides": [2, 2], "output_shape": [10, 15]}),
        Fault("transpose_same", "lacking", "ConvTranspose", (_WIDE,), (kernel,),
              {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        Fault("transpose_dilated", "refused", "ConvTranspose", (_WIDE,), (kernel,),
              {"dilations": [2, 1], "output_padding": [0, 1], "strides": [1, 2]}),
        Fault("transpose_groups", "wrong", "ConvTranspose", (_floats(1, 4, 3, 3),), (grouped,),
              {"group": 2, "pads": [1, 0, 0, 1]}),
        Fault("max_pool_places", "one output", "MaxPool", (_PIXELS,), (),
              {"kernel_shape": [2, 2], "strides": [2, 1]}, 12, 2),
        Fault("max_pool_ceil", "wrong windows", "MaxPool", (_WIDE,), (),
              {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1, "dilations": [2, 1]}),
        Fault("average_pool_ceil", "counts too many", "AveragePool", (_WIDE,), (),
              {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 0], "ceil_mode": 1,
               "count_include_pad": 1}, 19),
        Fault("lp_pool", "refused", "LpPool", (_WIDE,), (), {"kernel_shape": [2, 3], "p": 3}),
        Fault("lrn", "wrong", "LRN", (_floats(1, 5, 2, 2),), (), {"size": 3, "alpha": 0.3}),
        Fault("instance_norm", "large means", "InstanceNormalization",
              (_floats(1, 2, 9, 9, mean=4000.0),), (_f32(1, 2), _f32(0, 1))),
        Fault("layer_norm", "large means", "LayerNormalization", (_floats(3, 64, mean=4000.0),),
              (_floats(64),)),
        Fault("group_norm", "scale for each group", "GroupNormalization", (_floats(1, 4, 3, 3),),
              (_f32(1, 2, 3, 4), _f32(0, 1, 2, 3)), {"num_groups": 2}, 21),
    ]


def _resizes() -> list[Fault]:
    scales = (None, _f32(1, 1, 1.3, 1.7))

    def resize(name: str, why: str, **attributes: Any) -> Fault:
        return Fault(name, why, "Resize", (_WIDE,), scales, attributes)

    return [
        resize("resize_linear", "the ratio of sizes for the scale", mode="linear"),
        resize("resize_cubic", "the ratio of sizes for the scale", mode="cubic"),
        resize("resize_nearest", "the ratio of sizes for the scale", nearest_mode="ceil"),
        resize("resize_corners", "wrong scale", mode="linear",
               coordinate_transformation_mode="align_corners"),
        Fault("resize_down", "the ratio of sizes for the scale", "Resize", (_WIDE,),
              (None, _f32(1, 1, 0.6, 0.7)), {"mode": "linear", "antialias": 1}),
        Fault("upsample", "refused", "Upsample", (_PIXELS,), (_f32(1, 1, 2, 1.5),),
              {"mode": "linear"}, 9),
        Fault("grid_sample", "refused", "GridSample", (_PIXELS, _floats(1, 3, 3, 2)), (),
              {"mode": "cubic", "padding_mode": "reflection"}, 20),
    ]


def _layers() -> list[Fault]:
    x, state = _floats(3, 2, 4), _floats(2, 2, 5)
    return [
        Fault("lstm", "lacking", "LSTM", (x,), (_floats(2, 20, 4), _floats(2, 20, 5)),
              {"hidden_size": 5, "direction": "bidirectional"}, 14, 3),
        Fault("gru", "lacking", "GRU", (x,), (_floats(2, 15, 4), _floats(2, 15, 5),
              _floats(2, 30), None, state),
              {"hidden_size": 5, "direction": "bidirectional", "linear_before_reset": 1}, 14, 2),
        Fault("attention", "grouped queries", "Attention",
              (_floats(1, 4, 3, 8), _floats(1, 2, 5, 8), _floats(1, 2, 5, 8)), (),
              {"is_causal": 1}, 23),
        Fault("rotary", "lacking", "RotaryEmbedding", (_floats(1, 2, 3, 8), _floats(4, 4),
              _floats(4, 4), np.array([[0, 2, 1]])), (), {"interleaved": 1}, 23),
        Fault("matmul_integer", "zero points", "MatMulInteger",
              (np.array([[200, 3], [7, 255]], np.uint8), np.array([[1, 2], [3, 250]], np.uint8)),
              (np.uint8(12), np.array([3, 4], np.uint8))),
        Fault("q_linear_conv", "lacking", "QLinearConv",
              (np.arange(32, dtype=np.uint8).reshape(1, 2, 4, 4) * 7,),
              (_f32(0.1)[0], np.uint8(100), np.arange(24, dtype=np.int8).reshape(3, 2, 2, 2) - 9,
               _f32(0.1, 0.2, 0.3), np.int8([0, 0, 0]), _f32(0.9)[0], np.uint8(120))),
    ]
