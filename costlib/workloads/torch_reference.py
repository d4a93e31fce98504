"""PyTorch's own version of a network, to compare outputs and latency with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from costlib.workloads.signature import Signature, built
from costlib.workloads.torch_arrays import to_numpy, to_torch


@dataclass(frozen=True)
class TorchReference:
    """The PyTorch module that a network was exported from.

    Attributes
    ----------
    module
        A ``torch.nn.Module`` in evaluation mode.
    signature
        How the module takes the network's inputs; in order, if it is not given.
    state
        What its buffers that change are at first, by name.
    program
        The ``torch.export.ExportedProgram`` that it was exported as.
    """

    name: ClassVar[str] = "PyTorch"
    module: Any
    signature: Signature | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    program: Any = None

    @property
    def input_count(self) -> int | None:
        """How many inputs the module takes, if that is known; others behind them are left out."""
        return None if self.signature is None else len(self.signature.inputs)

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return PyTorch's own outputs, in the network's order, and the state after the call.

        Equal elements are in order where PyTorch leaves that open.
        """
        import torch
        from torch.utils import _pytree as pytree

        from costlib.workloads.torch_ties import TiesInOrder

        with torch.no_grad():
            for name, initial in self.state.items():
                self.module.get_buffer(name).copy_(initial)
        with TiesInOrder():
            found = pytree.tree_leaves(self.timed(inputs)())
        outputs = [value for value in found if isinstance(value, torch.Tensor)]
        outputs += [self.module.get_buffer(name) for name in self.state]
        return [to_numpy(output).copy() for output in outputs]

    def timed(self, inputs: Sequence[np.ndarray], device: str = "cpu") -> Callable[[], Any]:
        """Return a call of the module on ``inputs`` with nothing around it that takes time.

        The module is on that device; the call does not wait for it.
        """
        import torch

        tensors = [to_torch(array).to(device) for array in inputs]
        args: Sequence[Any] = tensors
        kwargs: Mapping[str, Any] = {}
        if self.signature is not None:
            args = built(self.signature.arguments, tensors)
            kwargs = built(self.signature.keywords, tensors)
        module = self.module

        def call() -> Any:
            with torch.inference_mode():
                return module(*args, **kwargs)

        return call
