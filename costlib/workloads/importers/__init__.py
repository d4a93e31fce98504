"""Importers: from files and objects of other frameworks to networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from costlib.errors import InputError
from costlib.tvm_compat import tvm
from costlib.workloads.importers.onnx import import_onnx
from costlib.workloads.importers.relax import import_json, import_relax, import_script
from costlib.workloads.importers.torch_export import export_module, import_program, import_saved
from costlib.workloads.network import InputSpec, Network

IMPORTERS: dict[str, Callable[[Path], Network]] = {
    ".json": import_json,
    ".onnx": import_onnx,
    ".pt2": import_saved,
    ".py": import_script,
}
"""What reads a file, by its suffix."""


def import_file(path: Path) -> Network:
    """Import a file; its suffix says which importer reads it.

    Raises
    ------
    InputError
        The file cannot be read, or is not what its name says.
    UnsupportedModelError
        An operator that TVM lacks, or a dynamic shape.
    """
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    return IMPORTERS[path.suffix](path)


def import_module(source: Any, inputs: tuple[InputSpec, ...] = ()) -> Network:
    """Import an object of TVM or PyTorch.

    Parameters
    ----------
    source
        A Relax ``IRModule``, a ``torch.export.ExportedProgram`` or a ``torch.nn.Module``.
    inputs
        What a ``torch.nn.Module`` takes.

    Raises
    ------
    InputError
        It is none of these, or the inputs are missing.
    UnsupportedModelError
        An operator that TVM lacks, or a dynamic shape.
    """
    name = type(source).__name__
    if isinstance(source, tvm.IRModule):
        return import_relax(source, name)
    import torch

    if isinstance(source, torch.export.ExportedProgram):
        return import_program(source, name)
    if isinstance(source, torch.nn.Module):
        if not inputs:
            raise InputError(f"say what {name} takes: inputs=(InputSpec(name, dtype, shape),)")
        return export_module(source.eval(), inputs, name)
    raise InputError(
        f"a network cannot be made of {name}; give a name, a path, an IRModule, "
        "an ExportedProgram or a torch.nn.Module"
    )
