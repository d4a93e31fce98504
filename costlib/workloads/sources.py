"""One entrance for everything a network can come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from costlib.errors import InputError, UnknownNameError
from costlib.tvm_compat import tvm
from costlib.workloads import zoo
from costlib.workloads.importers.onnx import import_onnx, import_onnx_model
from costlib.workloads.importers.relax import import_json, import_relax, import_script
from costlib.workloads.importers.torch_export import (
    export_module,
    export_with,
    import_program,
    import_saved,
)
from costlib.workloads.network import InputSpec, Network
from costlib.workloads.operators import OPERATORS, build_operator
from costlib.workloads.variants import SUFFIX, varied

_IMPORTERS: dict[str, Callable[[Path], Network]] = {
    ".json": import_json,
    ".onnx": import_onnx,
    ".pt2": import_saved,
    ".py": import_script,
}


def load_network(
    source: Any,
    inputs: tuple[InputSpec, ...] = (),
    *,
    example_inputs: Sequence[Any] | Mapping[str, Any] | None = None,
) -> Network:
    """Load a network from wherever it comes.

    Parameters
    ----------
    source
        One of

        - a name from the zoo, optionally with a size: ``"resnet_18@b4-r160"``;
        - a single operator with its extents: ``"matmul 512 512 512"``;
        - the path of an ONNX model (``.onnx``), a saved ``torch.export`` program (``.pt2``),
          or a Relax module as TVMScript (``.py``) or TVM JSON (``.json``);
        - any of these with ``+nhwc`` appended, the same with channels last, or with ``+nchw8c``,
          in blocks of 8 channels; these with ``+winograd``, see
          :mod:`costlib.workloads.winograd`; with ``+int8`` or ``+int4``, weights in so many
          bits, see :mod:`costlib.workloads.small_weights`; or with ``+bf16`` or ``+f16``, products
          in these types, see :mod:`costlib.workloads.half_precision`;
        - a Relax ``IRModule``, an ``onnx.ModelProto``, a ``torch.export.ExportedProgram``, a
          ``torch.nn.Module`` (which needs ``inputs`` or ``example_inputs``), or a
          :class:`Network`, which is returned as it is.
    inputs
        What a ``torch.nn.Module`` takes, described.
    example_inputs
        What a ``torch.nn.Module`` is called with: a tuple of arguments, or a mapping of named
        ones. They may be nests of tuples, lists and dicts.

    Returns
    -------
    Network
        Not prepared yet: see :func:`costlib.workloads.prepare_network`.

    Raises
    ------
    UnknownNameError
        Neither a network nor an operator has this name.
    UnsupportedModelError
        An operator that TVM lacks, or a dynamic shape.
    InputError
        A file that does not exist or is not what its name says, or a wrong operator spec.
    """
    if isinstance(source, Network):
        return source
    if not isinstance(source, (str, Path)):
        return _import_object(source, inputs, example_inputs)
    if (ending := SUFFIX.search(str(source))) is not None:
        return varied(load_network(type(source)(str(source)[: ending.start()])), ending[1])
    name = str(source).partition("@")[0].strip()
    if isinstance(source, str) and name in zoo.list_networks():
        return zoo.build_network(source.strip())
    if isinstance(source, str) and name.partition(" ")[0] in OPERATORS:
        return build_operator(source)
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in _IMPORTERS:
        try:
            path.open("rb").close()
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from None
        return _IMPORTERS[suffix](path)
    if isinstance(source, Path) or path.suffix or path.parent != Path():
        kinds = ", ".join(sorted(_IMPORTERS))
        raise InputError(f"{source}: the name of a file with a network ends in one of {kinds}")
    raise UnknownNameError("network or operator", name, [*zoo.list_networks(), *OPERATORS])


def _import_object(
    source: Any,
    inputs: tuple[InputSpec, ...],
    example_inputs: Sequence[Any] | Mapping[str, Any] | None,
) -> Network:
    name = type(source).__name__
    if isinstance(source, tvm.IRModule):
        return import_relax(source, name)
    if type(source).__module__.startswith("onnx"):
        return import_onnx_model(source, source.graph.name or name)
    import torch

    if isinstance(source, torch.export.ExportedProgram):
        return import_program(source, name)
    if isinstance(source, torch.nn.Module):
        module = source.eval()
        if isinstance(example_inputs, Mapping):
            return export_with(module, (), example_inputs, name)
        if example_inputs is not None:
            return export_with(module, example_inputs, {}, name)
        if inputs:
            return export_module(module, inputs, name)
        raise InputError(f"say what {name} takes, e.g. example_inputs=(torch.randn(1, 3),)")
    raise InputError(
        f"a network cannot be made of {name}; give a name, a path, an IRModule, "
        "an ExportedProgram or a torch.nn.Module"
    )
