"""Which of TVM's converters of PyTorch's operators are not used, and why.

Ours take every core operator, by what PyTorch recorded of its result. Those listed here are needed
because TVM 0.27 computes something else, or refuses. ``tests/workloads/test_aten_faults.py`` tries
TVM's on a case of each, and fails when a release of TVM has mended one.
"""

from __future__ import annotations

FAULTS = {
    "_native_batch_norm_legit": "statistics lose their digits where the mean is far from zero",
    "adaptive_max_pool2d": "refused",
    "avg_pool2d": "the divisor that a model gives is passed over",
    "clamp": "bounds of integers end in a traceback; NaN becomes a bound",
    "convolution": "float32 whatever the tensors are; three dimensions transposed are refused",
    "cumsum": "booleans are summed as booleans",
    "div": "integers are divided as integers; rounded quotients are refused",
    "elu": "input and output scales, which selu has, are passed over",
    "ge": "a float that integers are compared with loses its fraction",
    "grid_sampler_2d": "layout and size are wrong",
    "index": "negative indices read what lies before the tensor; pairs of them have another shape",
    "linear": "halves are refused: the sum is float32 and the bias is not",
    "matmul": "integers become float32",
    "max_pool2d_with_indices": "the indices are missing",
    "mul": "a float that integers are multiplied with loses its fraction",
    "scatter_add": "refused",
    "select": "-1 takes the first, not the last",
    "upsample_bilinear2d": "the ratio of the sizes is taken for the scale",
    "upsample_linear1d": "a traceback",
    "upsample_nearest2d": "places are half a pixel apart",
}
"""What is wrong with TVM's own converter, by the operator's name."""
