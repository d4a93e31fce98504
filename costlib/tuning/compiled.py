"""Compiled networks: built, saved, loaded and called on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.processor import allow_tiles
from costlib.tuning.library import NetworkLibrary
from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.quiet import stderr_silenced
from costlib.workloads.interface import (
    Kernel,
    calls_of,
    signature_of,
    state_of,
    target_of,
)
from costlib.workloads.signature import Signature, TensorSpec


class CompiledNetwork:
    """A network as machine code.

    Load a saved one and run it in two lines::

        network = CompiledNetwork.load("runs/bert_tiny/network.so")
        outputs = network(token_ids)

    It takes what the original takes and returns what that returns: nests of tuples, lists and
    dicts. Tensors may be PyTorch's, numpy's, or anything that speaks DLPack; if any of them is
    PyTorch's, so are the results, else numpy's. What the original keeps from call to call, such as
    a cache of keys and values, is kept here.

    The library is a plain TVM one: ``tvm.relax.VirtualMachine`` runs it where costlib is not
    installed.

    Attributes
    ----------
    signature
        What it takes and returns.
    machine
        The ``tvm.relax.VirtualMachine`` that runs it.
    """

    def __init__(self, module: Any) -> None:
        self._library: NetworkLibrary | None = None
        self.machine = relax.VirtualMachine(module, tvm.cpu())
        self.signature: Signature | None = signature_of(self.machine)
        self._state: list[Any] = []
        self.reset()

    @classmethod
    def build(cls, prepared: Any, hardware: Hardware, database: Any | None = None) -> Self:
        """Compile a prepared network.

        Parameters
        ----------
        prepared
            What :func:`costlib.workloads.prepare_network` returns.
        hardware
            What to compile for.
        database
            A MetaSchedule database; subgraphs that it has no program for stay as they are.

        Raises
        ------
        UnsupportedModelError
            TVM cannot compile it.
        """
        library = NetworkLibrary.build(prepared, hardware, database)
        network = cls(library.module)
        network._library = library
        return network

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InputError
            The file is missing or no compiled network.
        EnvironmentMismatchError
            It uses AMX, which this processor lacks, or Linux does not let this process use.
        """
        if not Path(path).is_file():
            raise InputError(f"{path} does not exist; `costlib tune` writes network.so")
        try:
            with stderr_silenced():
                network = cls(tvm.runtime.load_module(str(path)))
        except (RuntimeError, OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise InputError(f"{path} is no compiled network: {reason}") from None
        allow_tiles(target_of(network.machine))
        return network

    def save(self, path: str | Path) -> None:
        """Write a shared library, in one step.

        Raises
        ------
        InputError
            It was loaded from one.
        EnvironmentMismatchError
            No compiler is installed.
        StorageError
            It could not be linked or written; what was there before still is.
        """
        if self._library is None:
            raise InputError("this network was loaded from a file: copy that")
        self._library.save(path)

    @property
    def calls(self) -> list[Kernel] | None:
        """What it calls, in order; ``None`` if an older costlib compiled it, or it has branches."""
        return calls_of(self.machine)

    def first_state(self) -> list[Any]:
        """Return copies of the tensors that it keeps, as they are at first."""
        has_state = self.signature is not None and self.signature.state
        return state_of(self.machine) if has_state else []

    def reset(self) -> None:
        """Forget what earlier calls left behind."""
        self._state = self.first_state()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the network.

        Raises
        ------
        InputError
            The arguments are not what the network takes.
        """
        if self.signature is None:
            arrays = [tvm.runtime.tensor(np.asarray(array)) for array in args]
            return [output.numpy() for output in self._outputs(arrays)]
        given = self.signature.flatten(args, kwargs)
        tensors = [
            _tensor(spec, value) for spec, value in zip(self.signature.inputs, given, strict=True)
        ]
        outputs = self._outputs([*tensors, *self._state])
        count = len(self.signature.outputs)
        self._state = outputs[count:]
        returned = _to_torch if any(_is_torch(value) for value in given) else _to_numpy
        kept = {id(tensor) for tensor in self._state}
        return self.signature.unflatten(
            [returned(_copied(one) if id(one) in kept else one) for one in outputs[:count]]
        )

    def _outputs(self, tensors: Sequence[Any]) -> list[Any]:
        outputs = self.machine["main"](*tensors)
        return [outputs] if hasattr(outputs, "numpy") else list(outputs)


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _tensor(spec: TensorSpec, value: Any) -> Any:
    """Return a TVM tensor of a value, which shares its memory if that is possible."""
    if _is_torch(value):
        value = value.detach().cpu().contiguous()
        dtype, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    else:
        if not hasattr(value, "dtype"):
            value = np.asarray(value, spec.dtype)
        elif not isinstance(value, np.ndarray):
            value = np.from_dlpack(value) if hasattr(value, "__dlpack__") else np.asarray(value)
        dtype, shape = value.dtype.name, value.shape
    if (dtype, shape) != (spec.dtype, spec.shape):
        given = TensorSpec(name=spec.name, dtype=dtype, shape=shape)
        raise InputError(f"the network takes {spec}; given was {given}")
    try:
        return tvm.runtime.from_dlpack(value)
    except (RuntimeError, BufferError, TypeError, ValueError):
        return tvm.runtime.tensor(_numpy(value))


def _numpy(value: Any) -> np.ndarray:
    if _is_torch(value):
        from costlib.workloads.torch_arrays import to_numpy

        value = to_numpy(value)
    return np.array(value, order="C")


def _copied(tensor: Any) -> Any:
    return tvm.runtime.tensor(tensor.numpy())


def _to_numpy(tensor: Any) -> np.ndarray:
    try:
        return np.from_dlpack(tensor)
    except (RuntimeError, BufferError, TypeError, ValueError):
        array: np.ndarray = tensor.numpy()
        return array


def _to_torch(tensor: Any) -> Any:
    import torch

    return torch.from_dlpack(tensor)
