"""PyTorch: ``torch.export`` programs, as objects or saved, and modules."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from costlib.errors import InputError, UnsupportedModelError, quoted
from costlib.tvm_compat import relax
from costlib.tvm_compat.api import main_function
from costlib.workloads.importers.torch_archive import data_of
from costlib.workloads.importers.torch_parts import Parts, Variable
from costlib.workloads.integer_products import with_integer_products
from costlib.workloads.network import InputSpec, Network
from costlib.workloads.signature import Signature
from costlib.workloads.torch_arrays import to_numpy, to_torch
from costlib.workloads.torch_operators import declare_quantised
from costlib.workloads.torch_reference import TorchReference

_FORCE_DATA_ALONE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"


def export_module(module: Any, inputs: Sequence[InputSpec], name: str) -> Network:
    """Export a ``torch.nn.Module`` in evaluation mode and import the result.

    Errors are those of :func:`costlib.workloads.load_network`.
    """
    rng = np.random.default_rng(0)
    example = tuple(to_torch(spec.random(rng)) for spec in inputs)
    network = export_with(module, example, {}, name)
    highs = zip(network.inputs, inputs, strict=True)
    bounded = tuple(replace(spec, high=given.high) for spec, given in highs)
    return replace(network, inputs=bounded, examples=())


def export_with(module: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> Network:
    """Export a ``torch.nn.Module`` with these arguments and import the result."""
    import torch

    try:
        with _quiet(), torch.no_grad():
            program = torch.export.export(module, tuple(args), dict(kwargs))
            if _twice(program):
                program = torch.export.export(module, tuple(args), dict(kwargs), strict=True)
    except Exception as error:
        reason = quoted(error, 0)
        raise UnsupportedModelError(f"{name}: torch.export cannot trace it: {reason}") from None
    network = import_program(program, name)
    assert isinstance(network.reference, TorchReference)
    return replace(network, reference=replace(network.reference, module=module))


def import_program(program: Any, name: str) -> Network:
    """Import a ``torch.export.ExportedProgram``; see :func:`costlib.workloads.load_network`."""
    _check_static(program, name)
    try:
        with _quiet():
            decomposed = _decomposed(program)
            parts = Parts.of(decomposed)
            mod = with_integer_products(_built(decomposed, parts))
            examples = _examples(program, parts)
            reference = TorchReference(program.module(), parts.signature, parts.initial(), program)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(f"{name}: {error}", error.operators) from None
    except MemoryError:
        raise
    except Exception as error:
        reason = (
            f"{twice}; export it with strict=True" if (twice := _twice(program)) else quoted(error)
        )
        raise UnsupportedModelError(f"{name}: this program cannot be taken: {reason}") from None
    inputs = tuple(InputSpec(s.name, s.dtype, s.shape) for s in parts.signature.inputs)
    state = tuple(to_numpy(tensor).copy() for tensor in parts.state.values())
    return Network(name, mod, inputs, reference, parts.signature, state, examples)


def import_saved(path: Path) -> Network:
    """Import a program saved by ``torch.export.save``; see :func:`import_program`."""
    return import_program(load_program(path), path.stem)


def load_program(path: Path) -> Any:
    """Load a program saved by ``torch.export.save``; raise :class:`InputError` if it is none."""
    import torch

    try:
        with _quiet(), _data_alone():
            declare_quantised()
            return torch.export.load(data_of(path))
    except MemoryError:
        raise
    except Exception as error:
        reason = quoted(error, 0)
        raise InputError(f"{path}: not a saved torch.export program: {reason}") from None


def export_in_ranges(module: Any, args: Sequence[Any], dynamic_shapes: Any, name: str) -> Any:
    """Export a ``torch.nn.Module`` with extents that have names and ranges.

    Raises
    ------
    UnsupportedModelError
        The module does not compute all shapes of the ranges, or cannot be exported.
    """
    import torch

    try:
        with _quiet(), torch.no_grad():
            return torch.export.export(module, tuple(args), dynamic_shapes=dynamic_shapes)
    except Exception as error:
        raise UnsupportedModelError(f"{name}: {_constraint(error)}") from None


def _constraint(error: Exception) -> str:
    """Say in a line which range a module does not take, as far as PyTorch says it."""
    lines = [line.strip(" -\t") for line in str(error).splitlines()]
    told = [line for line in lines if line.startswith(("Not all values", "You marked"))]
    return f"these ranges are not possible: {(told or [quoted(error, 0)])[0]}"


def decomposed_graph(program: Any) -> Any:
    """Return a program as a ``torch.fx.GraphModule`` over ATen's operators, weights within.

    Raises
    ------
    UnsupportedModelError
        The program keeps state from call to call, which no such graph says.
    """
    with _quiet():
        found = _decomposed(program)
        if found.graph_signature.buffers_to_mutate:
            raise UnsupportedModelError("it keeps state from call to call")
        return found.module(check_guards=False)


def signature_at(program: Any, sizes: Mapping[str, int]) -> Signature:
    """Return how a program is called with these extents of its symbols."""
    return Parts.of(program, sizes).signature


def _decomposed(program: Any) -> Any:
    """Write a program in operators that we have converters for, as far as PyTorch can.

    Linear layers and matrix products stay whole: taken apart, they come with reshapes that keep
    bias and activation from being fused into them. So do attention's softmax, which would read
    the scores once more for rows that are masked entirely, and rolls, which would become look-ups.
    """
    import torch
    from torch._decomp import decomposition_table

    from costlib.workloads.importers.aten import CONVERTERS
    from costlib.workloads.importers.aten.graph import operator_name

    table = torch.export.default_decompositions()
    aten = torch.ops.aten
    kept = (aten.linear, aten.matmul, aten.polar, aten._safe_softmax, aten.roll)
    for operator in kept:
        table.pop(operator.default, None)
    extra = {
        operator: rule
        for operator, rule in decomposition_table.items()
        if operator not in table
        and operator_name(operator) not in CONVERTERS
        and not _writes(operator)
    }
    table.update(extra)
    return program.run_decompositions(table)


def _writes(operator: Any) -> bool:
    """Whether PyTorch's rule for an operator copies into a tensor, which no program may."""
    return str(operator).endswith("_scatter.default")


def _built(program: Any, parts: Parts) -> Any:
    """Return a Relax module of a decomposed program."""
    from costlib.workloads.importers.aten import CONVERTERS, Graph

    builder = relax.BlockBuilder()
    specs = [*parts.signature.inputs, *parts.signature.state]
    variables = {s.name: relax.Var(s.name, relax.TensorType(s.shape, s.dtype)) for s in specs}
    given = [variables[v.name] if isinstance(v, Variable) else v for v in parts.given]
    with main_function(builder, list(variables.values())):
        with builder.dataflow():
            graph = Graph(builder, CONVERTERS)
            results = graph.run(program.graph_module, given)
            named = dict(zip(parts.returned, results, strict=True))
            outputs = [
                graph.tensor(result)
                for result, name in zip(results, parts.returned, strict=True)
                if name is None
            ]
            outputs += [graph.tensor(named[name]) for name in parts.state]
            whole = outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)
            result = builder.emit_output(whole)
        builder.emit_func_output(result)
    return builder.get()


def _examples(program: Any, parts: Parts) -> tuple[np.ndarray, ...]:
    """Return the inputs that a program carries, in order; none if it carries none."""
    import torch
    from torch.utils import _pytree as pytree

    if program.example_inputs is None:
        return ()
    leaves = [v for v in pytree.tree_leaves(program.example_inputs) if isinstance(v, torch.Tensor)]
    if len(leaves) != len(parts.signature.inputs):
        return ()
    return tuple(to_numpy(tensor) for tensor in leaves)


def _check_static(program: Any, name: str) -> None:
    users = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op != "placeholder" or node.name not in users:
            continue
        for axis, extent in enumerate(getattr(node.meta["val"], "shape", ())):
            if not isinstance(extent, int):
                raise UnsupportedModelError(
                    f"{name}: dimension {axis} of input '{node.name}' is dynamic; `costlib tune` "
                    "takes its range, for all else export it without dynamic_shapes"
                )


def _twice(program: Any) -> str:
    """Say which buffer is also held as an attribute that PyTorch takes for a constant, if any."""
    import torch

    places = {tensor.data_ptr(): name for name, tensor in program.state_dict.items()}
    for constant in program.constants.values():
        if isinstance(constant, torch.Tensor) and constant.data_ptr() in places.keys() - {0}:
            return f"an attribute holds the buffer '{places[constant.data_ptr()]}' once more"
    return ""


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
