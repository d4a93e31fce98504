"""What an ONNX model ought to compute, by an implementation other than ours."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import uses_external_data

from costlib.errors import CostlibError, quoted

_LARGEST = 1 << 30
"""Bytes of a model that is handed over in memory."""


@dataclass(frozen=True)
class OnnxReference:
    """An ONNX model, run by ONNX Runtime, or by onnx's reference evaluator where it is missing.

    Attributes
    ----------
    model
        The model; its weights are included, or in files beside it.
    path
        Where it comes from; needed for those of more than 1 GiB, and for files beside it.
    is_exact
        Whether its shapes are ONNX's own where ONNX Runtime rounds otherwise; the evaluator runs
        it, then.
    """

    model: onnx.ModelProto = field(repr=False)
    path: str | None = None
    is_exact: bool = False

    @property
    def name(self) -> str:
        """Which implementation it is."""
        return "onnx's reference evaluator" if self._session is None else "ONNX Runtime"

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for arrays, both in the model's order.

        Raises
        ------
        CostlibError
            The implementation cannot run the model.
        """
        return [np.asarray(output) for output in self.timed(inputs)()]

    def timed(self, inputs: Sequence[np.ndarray]) -> Callable[[], Any]:
        """Return a call on ``inputs`` with nothing around it that takes time.

        What is behind the model's own inputs is left out.
        """
        names = self._input_names
        feeds = dict(zip(names, inputs[: len(names)], strict=True))
        run = self._run

        def call() -> Any:
            try:
                return run(feeds)
            except Exception as error:
                raise CostlibError(
                    f"{self.name} cannot run the model: {quoted(error, 0)}"
                ) from None

        return call

    @property
    def input_count(self) -> int:
        """How many inputs the model takes."""
        return len(self._input_names)

    @property
    def _input_names(self) -> list[str]:
        initialised = {tensor.name for tensor in self.model.graph.initializer}
        return [v.name for v in self.model.graph.input if v.name not in initialised]

    @property
    def _run(self) -> Callable[[dict[str, np.ndarray]], Any]:
        session = self._session
        if session is not None:
            return functools.partial(session.run, None)
        return functools.partial(self._evaluator.run, None)

    @functools.cached_property
    def _session(self) -> Any:
        """ONNX Runtime's session, or None if it is missing or cannot take the model."""
        if self.is_exact or importlib.util.find_spec("onnxruntime") is None:
            return None
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        source: Any = self.path
        if self.path is None or not (self._is_spread or self.model.ByteSize() >= _LARGEST):
            source = self.model.SerializeToString()
        try:
            return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception:
            return None

    @functools.cached_property
    def _evaluator(self) -> Any:
        from onnx.reference import ReferenceEvaluator

        from costlib.workloads.importers.onnx.reference_resize import ExactResize, Resize

        source = self.path if self._is_spread else self.model
        return ReferenceEvaluator(source, new_ops=[ExactResize if self.is_exact else Resize])

    @property
    def _is_spread(self) -> bool:
        """Whether there are weights in files beside the model."""
        return any(map(uses_external_data, self.model.graph.initializer))
