"""``Resize`` as ONNX Runtime and PyTorch compute it, for onnx's reference evaluator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from onnx.reference.ops import op_resize


class Resize(op_resize.Resize):  # type: ignore[misc]
    """With aligned corners, the last place of an output is the last one of its input.

    The evaluator takes the length of the output for the exact product of extent and scale, which
    may lie between two numbers, so that the corners are not aligned. What keeps its shape is not
    resized, whatever the scales.
    """

    op_domain: ClassVar[str] = ""

    def _run(self, x: Any, roi: Any, scales: Any = None, sizes: Any = None, **named: Any) -> Any:
        mode = named["coordinate_transformation_mode"]
        if scales is not None:
            axes = named["axes"]
            extents = np.array([x.shape[axis] for axis in axes] if axes else x.shape)
            lengths = np.floor(np.float32(extents) * scales).astype(np.int64)
            if mode != "tf_crop_and_resize" and np.array_equal(lengths, extents):
                return (x,)
            if mode == "align_corners":
                sizes, scales = lengths, None
        return super()._run(x, roi, scales, sizes, **named)
