"""PyTorch: ``torch.export`` programs, as objects or saved."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from costlib.errors import InputError, UnsupportedModelError, quoted
from costlib.tvm_compat import relax
from costlib.workloads.importers.relax import input_specs
from costlib.workloads.importers.torch_archive import data_of
from costlib.workloads.network import InputSpec, Network, TorchReference

_FORCE_DATA_ALONE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


def export_module(module: Any, inputs: Sequence[InputSpec], name: str) -> Network:
    """Export a ``torch.nn.Module`` in evaluation mode and import the result.

    The names of its inputs, which it takes in order, are replaced by those of its arguments.
    Errors are those of :func:`costlib.workloads.load_network`.
    """
    import numpy as np
    import torch

    rng = np.random.default_rng(0)
    example = tuple(torch.from_numpy(np.asarray(spec.random(rng))) for spec in inputs)
    try:
        with _quiet(), torch.no_grad():
            program = torch.export.export(module, example)
    except Exception as error:
        reason = quoted(error, 0)
        raise UnsupportedModelError(f"{name}: torch.export cannot trace it: {reason}") from None
    network = import_program(program, name, [spec.high for spec in inputs])
    return replace(network, reference=TorchReference(module))


def import_program(program: Any, name: str, highs: Sequence[int] = ()) -> Network:
    """Import a ``torch.export.ExportedProgram``; see :func:`costlib.workloads.load_network`.

    ``highs`` are exclusive upper bounds of the inputs' values, for integers.
    """
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    _check_static(program, name)
    # Linear layers and matrix products stay whole: taken apart, they come with reshapes that
    # keep bias and activation from being fused into them.
    table = torch.export.default_decompositions()
    table.pop(torch.ops.aten.linear.default, None)
    table.pop(torch.ops.aten.matmul.default, None)
    try:
        with _quiet():
            mod = from_exported_program(
                program.run_decompositions(table),
                unwrap_unit_return_tuple=True,
                run_ep_decomposition=False,
                custom_convert_map=_CONVERTERS,
            )
        reference = TorchReference(program.module())
    except Exception as error:
        reason = quoted(error)
        raise UnsupportedModelError(f"{name}: TVM cannot import this program: {reason}") from None
    return Network(name, mod, input_specs(mod, name, highs), reference)


def import_saved(path: Path) -> Network:
    """Import a program saved by ``torch.export.save``; see :func:`import_program`."""
    import torch

    try:
        with _quiet(), _data_alone():
            program = torch.export.load(data_of(path))
    except Exception as error:
        reason = quoted(error, 0)
        raise InputError(f"{path}: not a saved torch.export program: {reason}") from None
    return import_program(program, path.stem)


def _reduction(operator: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def convert(node: Any, importer: Any) -> Any:
        data = importer.env[node.args[0]]
        axes = list(node.args[1]) if len(node.args) > 1 else []
        keepdims = len(node.args) > 2 and bool(node.args[2])
        reduced = operator(data, axes or None, keepdims=keepdims)
        return importer.block_builder.emit(reduced)

    return convert


def _cumsum(node: Any, importer: Any) -> Any:
    dtype = str(node.meta["val"].dtype).removeprefix("torch.")
    data, axis = node.args[:2]
    return importer.block_builder.emit(relax.op.cumsum(importer.env[data], axis, dtype))


_CONVERTERS = {
    "amax.default": _reduction(relax.op.max),
    "amin.default": _reduction(relax.op.min),
    "cumsum.default": _cumsum,
}
"""What TVM's importer lacks although Relax has it, or, for sums of booleans, gets wrong."""


def _check_static(program: Any, name: str) -> None:
    users = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in users:
            continue
        for axis, extent in enumerate(getattr(node.meta["val"], "shape", ())):
            if not isinstance(extent, int):
                raise UnsupportedModelError(
                    f"{name}: dimension {axis} of input '{node.name}' is dynamic; "
                    "export it without dynamic_shapes"
                )


@contextlib.contextmanager
def _data_alone() -> Iterator[None]:
    """Keep ``torch.export.load`` from unpickling, which executes what a file says."""
    before = os.environ.get(_FORCE_DATA_ALONE)
    os.environ[_FORCE_DATA_ALONE] = "1"
    try:
        yield
    finally:
        del os.environ[_FORCE_DATA_ALONE]
        if before is not None:
            os.environ[_FORCE_DATA_ALONE] = before


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep what PyTorch says about its own insides from the user."""
    loggers = [logging.getLogger(name) for name in ("torch", "transformers")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
