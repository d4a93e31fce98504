"""Models of one ONNX node that importers have got wrong, each with inputs that can tell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper


@dataclass(frozen=True)
class Case:
    """A model of one node.

    Attributes
    ----------
    name
        Of the case.
    operator
        Of the node.
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
    values = np.random.default_rng(5).standard_normal(shape) + mean
    return values.astype(dtype)


def _i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def _f32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


_NAN = _f32(-2, np.nan, -0.5, 0, 1, 3)
_WIDE = _floats(1, 2, 5, 7)
_PIXELS = _floats(1, 1, 4, 4)


def cases() -> list[Case]:
    """Return all of them."""
    return [*_elementwise(), *_shapes(), *_indices(), *_windows(), *_resizes(), *_layers()]


def _elementwise() -> list[Case]:
    return [
        Case("relu_nan", "Relu", (_NAN,)),
        Case("sign_nan", "Sign", (_NAN,)),
        Case("clip_nan", "Clip", (_NAN,), (_f32(-1)[0], _f32(1)[0])),
        Case("max_nan", "Max", (_f32(1, 1, 1, 1, 1, 1), _NAN)),
        Case("max_int", "Max", (_i64(1, -2), _i64(0, 4))),
        Case("selu", "Selu", (_floats(3, 4),)),
        Case("pow_int_exponent", "Pow", (_floats(3, 4), _i64(2, 3, -1, 0))),
        Case("pow_int", "Pow", (_i64(3, -3, 10), _i64(33, 21, 18))),
        Case("div_int", "Div", (_i64(-7, 7, -7), _i64(2, -2, -2))),
        Case("mod_fmod", "Mod", (_i64(-7, 7), _i64(3, -3)), (), {"fmod": 1}),
        Case("mod_negative", "Mod", (_i64(-7, 7), _i64(3, -3))),
        Case("celu", "Celu", (_floats(3, 4),), (), {"alpha": 0.7}),
        Case("swish", "Swish", (_floats(3, 4),), (), {"alpha": 0.7}, 24),
        Case(
            "is_inf",
            "IsInf",
            (_f32(np.inf, -np.inf, 1),),
            (),
            {"detect_positive": 0},
        ),
        Case("cast_bool", "Cast", (_NAN,), (), {"to": 9}),
        Case("shrink", "Shrink", (_floats(3, 4),), (), {"lambd": 0.3, "bias": 0.1}),
        Case("softplus", "Softplus", (_f32(-100, 0, 100),)),
        Case("leaky_relu", "LeakyRelu", (_floats(3, dtype="float64"),)),
    ]


def _shapes() -> list[Case]:
    return [
        Case("softmax_11", "Softmax", (_floats(2, 3, 4),), (), {"axis": 1}, 11),
        Case("hardmax_11", "Hardmax", (_floats(2, 3, 4),), (), {"axis": 1}, 11),
        Case("split_uneven", "Split", (_floats(7, 2),), (), {"num_outputs": 3}, 18, 3),
        Case(
            "slice_back",
            "Slice",
            (_floats(4, 5),),
            (_i64(-1, 4), _i64(-9, 0), _i64(0, 1), _i64(-1, -2)),
        ),
        Case("pad_wrap", "Pad", (_floats(3, 4),), (_i64(0, 1, 0, 2),), {"mode": "wrap"}, 19),
        Case("pad_negative", "Pad", (_floats(3, 4),), (_i64(0, -1, 1, -1),)),
        Case("pad_int", "Pad", (_i64(1, 2),), (_i64(1, 1), np.array(-(2**60) - 1))),
        Case("trilu_k", "Trilu", (_floats(3, 4),), (np.array(1),), {"upper": 0}),
        Case("reverse", "ReverseSequence", (_floats(4, 3), _i64(1, 2, 4))),
        Case(
            "einsum",
            "Einsum",
            (_floats(2, 3, 4), _floats(2, 4, 5)),
            (),
            {"equation": "...ij,...jk"},
        ),
        Case("reduce_max_inf", "ReduceMax", (_f32(-np.inf, -np.inf),)),
        Case("reduce_max_nan", "ReduceMax", (_NAN,)),
        Case(
            "reduce_all",
            "ReduceSum",
            (_floats(3, 4),),
            (_i64(),),
            {"noop_with_empty_axes": 1, "keepdims": 0},
        ),
        Case("reduce_mean_int", "ReduceMean", (_i64(-3, 0, 1, -5),), (_i64(0),)),
        Case("log_sum_exp", "ReduceLogSumExp", (_f32(100, 101, 1000),)),
    ]


def _indices() -> list[Case]:
    return [
        Case("gather", "Gather", (_floats(4, 3), _i64(-1, 1, -4))),
        Case(
            "gather_elements",
            "GatherElements",
            (_floats(3, 4), np.array([[-1, 0], [2, -4]])),
            (),
            {"axis": 1},
        ),
        Case("gather_nd", "GatherND", (_floats(3, 4), np.array([[-1, -2]]))),
        Case(
            "scatter_elements",
            "ScatterElements",
            (_floats(3, 4), np.array([[-1, -3]]), _f32([9, 8])),
            (),
            {"axis": 1},
        ),
        Case(
            "scatter_nd",
            "ScatterND",
            (_floats(3, 4), np.array([[-1, -2], [0, 1]]), _f32(7, 8)),
            (),
            {"reduction": "add"},
        ),
        Case("one_hot", "OneHot", (_i64(-1, 2, 5),), (np.array(4), _f32(2, 5))),
        Case(
            "arg_max_last",
            "ArgMax",
            (_f32([1, 3, 3], [2, 2, 2]),),
            (),
            {"axis": 1, "select_last_index": 1},
        ),
        *_extremes(),
        Case(
            "cum_sum", "CumSum", (_floats(3, 4),), (np.array(-1),), {"exclusive": 1, "reverse": 1}
        ),
    ]


def _extremes() -> list[Case]:
    """Rows that are all worst, and rows with NaN: the first, in the midst, beside infinities."""
    inf, nan = np.inf, np.nan
    rows = _f32(
        [1, nan, 3, 3, -inf], [nan, 5, 4, nan, 2], [inf, nan, 1, nan, inf], [nan] * 5,
        [-inf] * 5, [inf] * 5, [-inf, nan, -inf, -inf, nan], [0, -0.0, 0, nan, -0.0],
    )  # fmt: skip
    bytes_ = np.array([[0] * 5, [255] * 5, [1, 2, 2, 1, 2]], "uint8")
    cases = [
        Case(f"{operator}_{array.dtype}_{last}".lower(), operator, (array,), (),
             {"axis": 1, "select_last_index": last})
        for operator in ("ArgMax", "ArgMin") for array in (rows, bytes_) for last in (0, 1)
    ]  # fmt: skip
    cases += [
        Case(f"top_k_nan_{k}_{largest}", "TopK", (rows,), (np.array([k]),),
             {"largest": largest}, 18, 2)
        for k in (2, 5) for largest in (0, 1)
    ]  # fmt: skip
    return [*cases, Case("hardmax_infinity", "Hardmax", (_f32([-inf] * 3, [1, 2, 2]),))]


def _windows() -> list[Case]:
    kernel, grouped = _floats(2, 3, 3, 3), _floats(4, 2, 3, 3)
    return [
        Case(
            "conv_same",
            "Conv",
            (_WIDE,),
            (_floats(3, 2, 2, 4),),
            {"auto_pad": "SAME_LOWER", "strides": [2, 3]},
        ),
        Case(
            "conv_half",
            "Conv",
            (_floats(1, 64, 3, 3, dtype="float16"),),
            (_floats(2, 64, 3, 3, dtype="float16"),),
        ),
        Case(
            "transpose_shape",
            "ConvTranspose",
            (_WIDE,),
            (kernel,),
            {"strides": [2, 2], "output_shape": [10, 15]},
        ),
        Case(
            "transpose_same",
            "ConvTranspose",
            (_WIDE,),
            (kernel,),
            {"strides": [2, 2], "auto_pad": "SAME_UPPER"},
        ),
        Case(
            "transpose_dilated",
            "ConvTranspose",
            (_WIDE,),
            (kernel,),
            {"dilations": [2, 1], "output_padding": [0, 1], "strides": [1, 2]},
        ),
        Case(
            "transpose_groups",
            "ConvTranspose",
            (_floats(1, 4, 3, 3),),
            (grouped,),
            {"group": 2, "pads": [1, 0, 0, 1]},
        ),
        Case(
            "max_pool_places",
            "MaxPool",
            (_PIXELS,),
            (),
            {"kernel_shape": [2, 2], "strides": [2, 1]},
            12,
            2,
        ),
        Case(
            "max_pool_ceil",
            "MaxPool",
            (_WIDE,),
            (),
            {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1, "dilations": [2, 1]},
        ),
        Case(
            "average_pool_ceil",
            "AveragePool",
            (_WIDE,),
            (),
            {
                "kernel_shape": [3, 3],
                "strides": [2, 2],
                "pads": [1, 1, 0, 0],
                "ceil_mode": 1,
                "count_include_pad": 1,
            },
            19,
        ),
        Case("lp_pool", "LpPool", (_WIDE,), (), {"kernel_shape": [2, 3], "p": 3}),
        Case("lrn", "LRN", (_floats(1, 5, 2, 2),), (), {"size": 3, "alpha": 0.3}),
        Case(
            "instance_norm",
            "InstanceNormalization",
            (_floats(1, 2, 9, 9, mean=20.0),),
            (_f32(1, 2), _f32(0, 1)),
        ),
        Case("layer_norm", "LayerNormalization", (_floats(3, 64, mean=1000.0),), (_floats(64),)),
        Case(
            "group_norm",
            "GroupNormalization",
            (_floats(1, 4, 3, 3),),
            (_f32(1, 2, 3, 4), _f32(0, 1, 2, 3)),
            {"num_groups": 2},
            21,
        ),
    ]


def _resizes() -> list[Case]:
    scales = (None, _f32(1, 1, 1.3, 1.7))

    def resize(name: str, **attributes: Any) -> Case:
        return Case(name, "Resize", (_WIDE,), scales, attributes)

    return [
        resize("resize_linear", mode="linear"),
        resize("resize_cubic", mode="cubic"),
        resize("resize_nearest", nearest_mode="ceil"),
        resize("resize_corners", mode="linear", coordinate_transformation_mode="align_corners"),
        Case(
            "resize_down",
            "Resize",
            (_WIDE,),
            (None, _f32(1, 1, 0.6, 0.7)),
            {"mode": "linear", "antialias": 1},
        ),
        Case("upsample", "Upsample", (_PIXELS,), (_f32(1, 1, 2, 1.5),), {"mode": "linear"}, 9),
        Case(
            "grid_sample",
            "GridSample",
            (_PIXELS, _floats(1, 3, 3, 2)),
            (),
            {"mode": "cubic", "padding_mode": "reflection"},
            20,
        ),
    ]


def _layers() -> list[Case]:
    x, state = _floats(2, 2, 4), _floats(2, 2, 5)
    return [
        Case(
            "lstm",
            "LSTM",
            (x,),
            (_floats(2, 20, 4), _floats(2, 20, 5)),
            {"hidden_size": 5, "direction": "bidirectional"},
            14,
            3,
        ),
        Case(
            "gru",
            "GRU",
            (x,),
            (_floats(2, 15, 4), _floats(2, 15, 5), _floats(2, 30), None, state),
            {"hidden_size": 5, "direction": "bidirectional", "linear_before_reset": 1},
            14,
            2,
        ),
        Case(
            "attention",
            "Attention",
            (_floats(1, 4, 3, 8), _floats(1, 2, 5, 8), _floats(1, 2, 5, 8)),
            (),
            {"is_causal": 1},
            23,
        ),
        Case(
            "rotary",
            "RotaryEmbedding",
            (_floats(1, 2, 3, 8), _floats(4, 4), _floats(4, 4), np.array([[0, 2, 1]])),
            (),
            {"interleaved": 1},
            23,
        ),
        Case(
            "matmul_integer",
            "MatMulInteger",
            (np.array([[200, 3], [7, 255]], np.uint8), np.array([[1, 2], [3, 250]], np.uint8)),
            (np.uint8(12), np.array([3, 4], np.uint8)),
        ),
        Case(
            "q_linear_conv",
            "QLinearConv",
            (np.arange(32, dtype=np.uint8).reshape(1, 2, 4, 4) * 7,),
            (
                _f32(0.1)[0],
                np.uint8(100),
                np.arange(24, dtype=np.int8).reshape(3, 2, 2, 2) - 9,
                _f32(0.1, 0.2, 0.3),
                np.int8([0, 0, 0]),
                _f32(0.9)[0],
                np.uint8(120),
            ),
        ),
    ]
