"""What a compiled network says of itself, as functions: signature, first state, and kernels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from costlib.frozen import Frozen
from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.direct_calls import CALLS, prepared_name
from costlib.tvm_compat.merging import merged
from costlib.workloads.folding import constant_of
from costlib.workloads.network import Network
from costlib.workloads.ranges.table import ShapeTable
from costlib.workloads.signature import Signature
from costlib.workloads.task import Task

SIGNATURE = "costlib_signature"
STATE = "costlib_state"
KERNELS = "costlib_kernels"
TARGET = "costlib_target"
SHAPES = "costlib_shapes"


class Kernel(Frozen):
    """A function that a network calls.

    Attributes
    ----------
    name, workload_id
        Title and id of its task; without the second it is no task.
    flops
        Floating-point operations of a call.
    nbytes
        Size of what it is called with.
    """

    name: str
    workload_id: str = ""
    flops: float = 0.0
    nbytes: int = 0


_KERNELS = TypeAdapter(dict[str, Kernel])


def with_interface(mod: Any, network: Network) -> Any:
    """Add functions to a Relax module that return the network's signature and first state."""
    state = relax.Tuple([constant_of(array) for array in network.state])
    text = network.interface.model_dump_json().encode()
    return _with(mod, {SIGNATURE: _bytes(text), STATE: state})


def with_kernels(mod: Any, tasks: Mapping[str, Task], target: Mapping[str, Any]) -> Any:
    """Add functions to a Relax module: for which target it is, and which task each of its is."""
    kernels = {
        name: Kernel(
            name=task.title, workload_id=task.workload_id, flops=task.flops, nbytes=task.nbytes
        )
        for name, task in tasks.items()
    }
    values = {KERNELS: _KERNELS.dump_json(kernels), TARGET: json.dumps(dict(target)).encode()}
    return _with(mod, {name: _bytes(text) for name, text in values.items()})


def with_shapes(modules: Mapping[str, Any], table: ShapeTable) -> Any:
    """Put the prepared modules of a network's points into one that says which shapes they serve.

    The modules are named by the points' functions; those that serve no shape are left out.
    """
    named = {point.function: modules[point.function] for point in table.points}
    if table.anywhere is not None:
        named[table.anywhere] = modules[table.anywhere]
    return _with(merged(named), {SHAPES: _bytes(table.model_dump_json().encode())})


def _with(mod: Any, values: Mapping[str, Any]) -> Any:
    builder = relax.BlockBuilder()
    for name, value in values.items():
        with builder.function(name, []):
            builder.emit_func_output(value)
    result = tvm.IRModule(mod.functions, attrs=mod.attrs)
    result.update(builder.get())
    return result


def _bytes(text: bytes) -> Any:
    return constant_of(np.frombuffer(text, "uint8"))


def signature_of(machine: Any) -> Signature | None:
    """Return the signature of a loaded network; ``None`` if an older costlib compiled it."""
    text = _told(machine, SIGNATURE)
    return None if text is None else Signature.model_validate_json(text)


def target_of(machine: Any) -> dict[str, Any]:
    """Return what a loaded network was compiled for; nothing if an older costlib compiled it."""
    text = _told(machine, TARGET)
    return {} if text is None else dict(json.loads(text))


def shapes_of(machine: Any) -> ShapeTable | None:
    """Return which shapes a loaded network takes; ``None`` if that is a single one."""
    text = _told(machine, SHAPES)
    return None if text is None else ShapeTable.model_validate_json(text)


def state_of(machine: Any) -> list[Any]:
    """Return copies of a loaded network's first state."""
    return [tvm.runtime.tensor(tensor.numpy()) for tensor in machine[STATE]()]


def calls_of(machine: Any) -> list[Kernel] | None:
    """Return what a loaded network calls, in order; ``None`` if it does not tell."""
    names, known = _told(machine, CALLS), _told(machine, KERNELS)
    if names is None or known is None:
        return None
    kernels = _KERNELS.validate_json(known)
    return [_kernel(kernels, name) for name in json.loads(names)]


def _kernel(kernels: Mapping[str, Kernel], name: str) -> Kernel:
    return kernels.get(prepared_name(name)) or Kernel(name=name)


def _told(machine: Any, name: str) -> bytes | None:
    try:
        found: bytes = machine[name]().numpy().tobytes()
    except (AttributeError, ValueError, RuntimeError):
        return None
    return found
