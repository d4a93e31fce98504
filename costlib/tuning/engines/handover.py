"""What other engines are given of a network, in files of one folder.

A program of ``torch.export`` is written as an ONNX model by a process of its own, as
``python -m costlib.tuning.engines.handover FD FOLDER``: that imports much, and says much.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costlib.arrays import save_arrays
from costlib.errors import MeasureError, quoted
from costlib.tuning.engines.answering import Answering, serve
from costlib.workloads.torch_operators import declare_quantised

if TYPE_CHECKING:
    from costlib.tuning.engines.catalogue import Form

PROGRAM, MODEL, INPUTS, SIGNATURE = "program.pt2", "model.onnx", "inputs", "signature.json"
_EXPORT_SECS = 900.0


def missing_package(name: str) -> str | None:
    """Say that a package has to be installed, if it is not."""
    if importlib.util.find_spec(name) is not None:
        return None
    return f"{name} is not installed; pip install 'costlib[engines]'"


class Handover:
    """The files of a network; each is written when the first engine asks for it.

    Parameters
    ----------
    reference
        The network's original; ``None`` if it has none.
    inputs
        What it is called with; what its original does not take, such as the true extents of a
        padded shape, is left out.
    folder
        Where the files go.
    """

    def __init__(self, reference: Any, inputs: Sequence[np.ndarray], folder: Path) -> None:
        self.folder = folder
        self._reference = reference
        self._failed: dict[Form, str] = {}
        save_arrays(folder / INPUTS, inputs[: getattr(reference, "input_count", None)])

    def provide(self, form: Form) -> None:
        """Write what engines of a kind take.

        Raises
        ------
        MeasureError
            It cannot be written.
        """
        if form in self._failed:
            raise MeasureError(self._failed[form])
        if (self.folder / (PROGRAM if form == "program" else MODEL)).exists():
            return
        try:
            self._write(form)
        except MeasureError as error:
            self._failed[form] = str(error)
            raise

    def _write(self, form: Form) -> None:
        from costlib.workloads.importers.onnx.reference import OnnxReference
        from costlib.workloads.torch_reference import TorchReference

        if isinstance(self._reference, TorchReference):
            self._write_program(self._reference)
            if form == "onnx":
                if (missing := missing_package("onnxscript")) is not None:
                    raise MeasureError(missing)
                with Answering("torch.onnx.export", __name__, str(self.folder)) as exporting:
                    exporting.answer(_EXPORT_SECS)
        elif isinstance(self._reference, OnnxReference) and form == "onnx":
            import onnx

            model = onnx.ModelProto()
            model.CopyFrom(self._reference.model)  # Saving it takes the weights out of it.
            onnx.save(model, self.folder / MODEL, save_as_external_data=True)
        else:
            needed = "PyTorch" if form == "program" else "PyTorch or ONNX"
            raise MeasureError(f"it takes networks of {needed} alone")

    def _write_program(self, reference: Any) -> None:
        import torch

        place = self.folder / PROGRAM
        if place.exists():
            return
        try:
            torch.export.save(reference.program, place)
        except Exception as error:
            place.unlink(missing_ok=True)
            raise MeasureError(f"PyTorch cannot save the program: {quoted(error, 0)}") from None
        if reference.signature is not None:
            (self.folder / SIGNATURE).write_text(reference.signature.model_dump_json())


def load_program(folder: Path) -> Any:
    """Load the program in a folder."""
    import torch

    declare_quantised()
    return torch.export.load(folder / PROGRAM)


def main() -> None:
    """Write the program in the folder on the command line as an ONNX model."""
    with serve() as (reply, _, (folder,)):
        import torch

        program = load_program(Path(folder))
        written = torch.onnx.export(program, dynamo=True, verbose=False)
        written.save(Path(folder) / MODEL, external_data=True)
        reply()


if __name__ == "__main__":
    main()
