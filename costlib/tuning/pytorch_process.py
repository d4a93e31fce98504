"""PyTorch in a process of its own, whose threads sleep while they wait for each other.

By default they spin. On a machine that does something else, too, one of them then spins for the
other, which the machine lets wait: a call takes many times as long as it should. How they
wait is decided when a process loads PyTorch.

The process runs as ``python -m costlib.tuning.pytorch_process FD FOLDER THREADS``; the file
descriptor is a socket. Seconds come in; those of the fastest call in that time go out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import load_arrays, save_arrays
from costlib.errors import MeasureError
from costlib.measure.client import start_process
from costlib.scratch import ScratchFolder
from costlib.workloads.torch_reference import TorchReference

_PROGRAM, _INPUTS, _SIGNATURE = "program.pt2", "inputs", "signature.json"
_START_SECS = 120.0
_PASSIVE = {"OMP_WAIT_POLICY": "passive"}


class PatientPyTorch(AbstractContextManager["PatientPyTorch"]):
    """A network's original in such a process; use as a context manager.

    Parameters
    ----------
    reference
        The original, with its program.
    inputs
        What it is called with.
    threads
        How many it may use.

    Raises
    ------
    MeasureError
        The program cannot be handed over, or does not run there.
    """

    def __init__(
        self, reference: TorchReference, inputs: Sequence[np.ndarray], threads: int
    ) -> None:
        import torch

        self._scratch = ScratchFolder()
        folder = self._scratch.path
        try:
            torch.export.save(reference.program, folder / _PROGRAM)
        except Exception as error:
            self._scratch.close()
            raise MeasureError(f"PyTorch cannot save the program: {error}") from None
        save_arrays(folder / _INPUTS, inputs)
        if reference.signature is not None:
            (folder / _SIGNATURE).write_text(reference.signature.model_dump_json())
        self._process, self._connection = start_process(
            __name__, str(folder), str(threads), env=os.environ | _PASSIVE
        )

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.wait()
        self._scratch.close()

    def fastest_call(self, secs: float) -> float:
        """Return the seconds of the fastest call in a while."""
        try:
            self._connection.send_bytes(str(secs).encode())
            if not self._connection.poll(_START_SECS + secs):
                raise MeasureError("PyTorch does not answer")
            return float(self._connection.recv_bytes())
        except (EOFError, OSError):
            raise MeasureError("PyTorch died over the program") from None


def main() -> None:
    """Time the program in the folder on the command line, until the other end is closed."""
    import torch

    from costlib.measure.jobs import fastest_call
    from costlib.measure.server import caller
    from costlib.workloads.signature import Signature

    connection, (folder, threads) = caller()
    torch.set_num_threads(int(threads))
    signature = Path(folder) / _SIGNATURE
    known = Signature.model_validate_json(signature.read_text()) if signature.exists() else None
    program: Any = torch.export.load(Path(folder) / _PROGRAM)
    reference = TorchReference(program.module(), known)
    call = reference.timed(load_arrays(Path(folder) / _INPUTS))
    call()
    while True:
        try:
            secs = float(connection.recv_bytes())
        except EOFError:
            return
        connection.send_bytes(str(fastest_call(call, secs)).encode())


if __name__ == "__main__":
    main()
