"""``Resize`` as ONNX Runtime and PyTorch compute it, for onnx's reference evaluator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from onnx.reference.ops import op_resize


class Resize(op_resize.Resize):  # type: ignore[misc]
    """With aligned corners, the last place of an output is the last one of its input.

    The evaluator takes the length of the output for the exact product of extent and scale, which
    may lie between two numbers, so that the corners are not aligned. What keeps its shape is not
    resized, whatever the scales. The nearest element is taken, not multiplied by 1 and added to
    others times 0, which would make infinity a NaN.
    """

    op_domain: ClassVar[str] = ""
    number: ClassVar[Any] = np.float32
    """In which extents are scaled."""

    def _run(self, x: Any, roi: Any, scales: Any = None, sizes: Any = None, **named: Any) -> Any:
        mode = named["coordinate_transformation_mode"]
        if scales is not None:
            axes = named["axes"]
            extents = np.array([x.shape[axis] for axis in axes] if axes else x.shape)
            lengths = np.floor(self.number(extents) * scales).astype(np.int64)
            if mode != "tf_crop_and_resize" and np.array_equal(lengths, extents):
                return (x,)
            if mode == "align_corners":
                sizes, scales = lengths, None
        if named["mode"] == "nearest" and mode != "tf_crop_and_resize":
            places = np.arange(x.size, dtype=np.float64).reshape(x.shape)
            (taken,) = super()._run(places, roi, scales, sizes, **named)
            return (x.reshape(-1)[np.rint(taken).astype(np.int64)],)
        return super()._run(x, roi, scales, sizes, **named)


class ExactResize(Resize):
    """As ONNX itself infers shapes."""

    number: ClassVar[Any] = np.float64


ExactResize.__name__ = "Resize"  # By which the evaluator knows what it computes.
