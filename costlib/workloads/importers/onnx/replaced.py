"""Why ONNX models do not go through TVM's importer, ``tvm.relax.frontend.onnx``.

It looks at a graph without knowing shapes, so that whatever is computed from them (arithmetic on
shapes, branches, loops) and whatever has no declared shape is refused; versions of operators,
definitions of operators by others, functions of the model itself and the domain of ONNX Runtime's
operators are not looked at. Our own walk knows the type of every value, and checks each against
what ONNX infers.

:data:`FAULTS` lists what else it does wrongly. ``tests/workloads/test_onnx_faults.py`` has a model
for each entry, and fails once TVM computes it rightly.
"""

from __future__ import annotations

FAULTS = {
    "Attention": "refuses heads given as an axis",
    "Celu": "refused",
    "Conv": "adds up half precision in half precision",
    "ConvTranspose": "gives another size than output_shape says",
    "GRU": "refused",
    "IsInf": "does not tell the signs apart",
    "LSTM": "refused",
    "MaxPool": "refuses indices as an output",
    "OneHot": "gives double precision",
    "Pow": "refuses operands of two dtypes, and integers",
    "QLinearConv": "refused",
    "Resize": "takes the ratio of the sizes for the scale",
    "ReverseSequence": "refused",
    "RotaryEmbedding": "refused",
    "Sign": "makes 0 of NaN",
    "Swish": "refused",
    "Upsample": "refuses scales that are an input",
}
"""What TVM 0.27 does wrongly, by operator."""
