"""Compiled networks: built, saved, loaded and called on this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.processor import allow_tiles
from costlib.tuning.library import NetworkLibrary
from costlib.tuning.tensors import Given, as_numpy, as_torch, copied, cropped_to
from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.quiet import stderr_silenced
from costlib.workloads.interface import (
    Kernel,
    calls_of,
    shapes_of,
    signature_of,
    state_of,
    target_of,
)
from costlib.workloads.ranges.table import Served, ShapeTable
from costlib.workloads.signature import Signature


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
        What it takes and returns; of a network whose dimensions have ranges, at the largest shape.
    shapes
        The shapes that it takes, if it takes more than one.
    machine
        The ``tvm.relax.VirtualMachine`` that runs it.
    """

    def __init__(self, module: Any) -> None:
        self._library: NetworkLibrary | None = None
        self.machine = relax.VirtualMachine(module, tvm.cpu())
        self.shapes = shapes_of(self.machine)
        self.signature: Signature | None = (
            self.shapes.signature if self.shapes else signature_of(self.machine)
        )
        self._known: dict[Any, tuple[Callable[..., Any], Served, list[Any]]] = {}
        self._state: list[Any] = []
        self.reset()

    @classmethod
    def build(cls, prepared: Any, hardware: Hardware, database: Any | None = None) -> Self:
        """Compile a prepared network; see :meth:`costlib.tuning.library.NetworkLibrary.build`."""
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
            return [output.numpy() for output in self._outputs("main", arrays)]
        pairs = zip(self.signature.inputs, self.signature.flatten(args, kwargs), strict=True)
        given = [Given.of(value, spec) for spec, value in pairs]
        returned = as_torch if any(one.is_torch for one in given) else as_numpy
        if self.shapes is not None:
            outputs = self._in_shape(self.shapes, given, returned)
        else:
            outputs = self._in_one_shape(self.signature, given, returned)
        return self.signature.unflatten(outputs)

    def _in_one_shape(
        self, signature: Signature, given: Sequence[Given], returned: Callable[[Any], Any]
    ) -> list[Any]:
        for one, spec in zip(given, signature.inputs, strict=True):
            if one.spec != spec:
                raise InputError(f"the network takes {spec}; given was {one.spec}")
        outputs = self._outputs("main", [*(one.tensor() for one in given), *self._state])
        count = len(signature.outputs)
        self._state = outputs[count:]
        kept = {id(tensor) for tensor in self._state}
        return [returned(copied(one) if id(one) in kept else one) for one in outputs[:count]]

    def _in_shape(
        self, shapes: ShapeTable, given: Sequence[Given], returned: Callable[[Any], Any]
    ) -> list[Any]:
        """Call the function that serves the shape; return as much as the shape has."""
        key = tuple((one.spec.dtype, one.spec.shape) for one in given)
        if key not in self._known:
            self._known[key] = self._served(shapes, given)
        function, served, lengths = self._known[key]
        tensors = [one.tensor(shape) for one, shape in zip(given, served.inputs, strict=True)]
        outputs = map(returned, _listed(function(*tensors, *lengths)))
        cropped = zip(outputs, served.outputs, strict=True)
        return [cropped_to(output, shape) for output, shape in cropped]

    def _served(
        self, shapes: ShapeTable, given: Sequence[Given]
    ) -> tuple[Callable[..., Any], Served, list[Any]]:
        """Return the function for a shape, how that is computed, and its true extents."""
        served = shapes.served(shapes.sizes_of([one.spec for one in given]))
        lengths = [tvm.runtime.tensor(length) for length in served.lengths]
        return self.machine[served.point.function], served, lengths

    def _outputs(self, function: str, tensors: Sequence[Any]) -> list[Any]:
        return _listed(self.machine[function](*tensors))


def _listed(outputs: Any) -> list[Any]:
    return [outputs] if hasattr(outputs, "numpy") else list(outputs)
