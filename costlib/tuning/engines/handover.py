"""What other engines are given of a network, in files of one folder.

A program of ``torch.export`` is written as an ONNX model, and that with rounded weights, by a
process of its own, as ``python -m costlib.tuning.engines.handover FD FOLDER FORM``: that imports
much, and says much.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from costlib.arrays import save_arrays
from costlib.errors import MeasureError, quoted
from costlib.tuning.engines.answering import Answering, serve
from costlib.workloads.torch_operators import declare_quantised

Form = Literal["program", "onnx", "onnx-int8-weights", "onnx-int4-weights"]
"""What an engine is given: a program of ``torch.export``, or an ONNX model.

The weights of that model's products may be rounded by ONNX Runtime.
"""

FILES: Mapping[Form, str] = {
    "program": "program.pt2",
    "onnx": "model.onnx",
    "onnx-int8-weights": "model-int8-weights.onnx",
    "onnx-int4-weights": "model-int4-weights.onnx",
}
"""Where each form is in the folder."""

INPUTS, SIGNATURE = "inputs", "signature.json"
_EXPORT_SECS = 900.0

WEIGHT_BITS: Mapping[Form, int] = {"onnx-int8-weights": 8, "onnx-int4-weights": 4}
"""What weights are rounded to, in the forms where they are."""

_BLOCK_ROWS = 32
"""Rows of a column that share a scale, as in weights of 4 bits of ours."""

_IN_8_BITS = 4
"""ONNX Runtime's accuracy level that rounds activations to 8 bits, too: the fastest one."""


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
        if (self.folder / FILES[form]).exists():
            return
        try:
            self._write(form)
        except MeasureError as error:
            self._failed[form] = str(error)
            raise

    def _write(self, form: Form) -> None:
        from costlib.workloads.importers.onnx.reference import OnnxReference
        from costlib.workloads.torch_reference import TorchReference

        if form in WEIGHT_BITS:
            self.provide("onnx")
            self._write_apart(form, "onnxruntime", "rounding the weights")
        elif isinstance(self._reference, TorchReference):
            self._write_program(self._reference)
            if form == "onnx":
                self._write_apart(form, "onnxscript", "torch.onnx.export")
        elif isinstance(self._reference, OnnxReference) and form == "onnx":
            import onnx

            model = onnx.ModelProto()
            model.CopyFrom(self._reference.model)  # Saving it takes the weights out of it.
            onnx.save(model, self.folder / FILES["onnx"], save_as_external_data=True)
        else:
            needed = "PyTorch" if form == "program" else "PyTorch or ONNX"
            raise MeasureError(f"it takes networks of {needed} alone")

    def _write_apart(self, form: Form, package: str, what: str) -> None:
        if (missing := missing_package(package)) is not None:
            raise MeasureError(missing)
        with Answering(what, __name__, str(self.folder), form) as writing:
            writing.answer(_EXPORT_SECS)

    def _write_program(self, reference: Any) -> None:
        import torch

        place = self.folder / FILES["program"]
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
    return torch.export.load(folder / FILES["program"])


def main() -> None:
    """Write a form of the program, or of the ONNX model, in the folder on the command line."""
    with serve() as (reply, _, (folder, form)):
        if form == "onnx":
            _export(Path(folder))
        else:
            _round_weights(Path(folder), cast("Form", form))
        reply()


def _export(folder: Path) -> None:
    import torch

    written = torch.onnx.export(load_program(folder), dynamo=True, verbose=False)
    assert written is not None
    written.save(folder / FILES["onnx"], external_data=True)


def _round_weights(folder: Path, form: Form) -> None:
    """Keep constant weights of products in few bits, as ONNX Runtime does for language models.

    Raises
    ------
    MeasureError
        No product has any.
    """
    import onnx
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantizer = MatMulNBitsQuantizer(
        onnx.load(folder / FILES["onnx"]),
        bits=WEIGHT_BITS[form],
        block_size=_BLOCK_ROWS,
        is_symmetric=True,
        accuracy_level=_IN_8_BITS,
    )
    quantizer.model.replace_gemm_with_matmul()
    quantizer.process()
    if not any(node.op_type == "MatMulNBits" for node in quantizer.model.nodes()):
        raise MeasureError("no product has constant weights")
    quantizer.model.save_model_to_file(str(folder / FILES[form]), True)


if __name__ == "__main__":
    main()
