"""Networks compiled to a shared library: built, saved, loaded and called."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np

from costlib.errors import InputError
from costlib.files import storage_errors
from costlib.hardware import Hardware
from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.api import compile_network
from costlib.tvm_compat.quiet import stderr_silenced


class CompiledNetwork:
    """A network as machine code.

    Load a saved one and run it in two lines::

        network = CompiledNetwork.load("runs/bert_tiny/network.so")
        outputs = network(token_ids)

    The library is a plain TVM one: ``tvm.relax.VirtualMachine`` runs it where costlib is not
    installed.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._machine = relax.VirtualMachine(module, tvm.cpu())

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
        """
        return cls(compile_network(prepared, hardware.tvm_target(), database))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        InputError
            The file is missing or no compiled network.
        """
        if not Path(path).is_file():
            raise InputError(f"{path} does not exist; `costlib tune` writes network.so")
        try:
            return cls(tvm.runtime.load_module(str(path)))
        except (RuntimeError, OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[-1]
            raise InputError(f"{path} is no compiled network: {reason}") from None

    def save(self, path: str | Path) -> None:
        """Write a shared library."""
        with storage_errors(Path(path)), stderr_silenced():
            self._module.export_library(str(path))

    def __call__(self, *inputs: Any) -> list[np.ndarray]:
        """Run the network on arrays; return its outputs."""
        outputs = self._machine["main"](*(tvm.runtime.tensor(np.asarray(i)) for i in inputs))
        if not hasattr(outputs, "numpy"):
            return [output.numpy() for output in outputs]
        return [outputs.numpy()]
