"""What a compiled network says of itself: its signature and its first state, as functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.tvm_compat import relax, tvm
from costlib.workloads.folding import constant_of
from costlib.workloads.network import Network
from costlib.workloads.signature import Signature

SIGNATURE = "costlib_signature"
STATE = "costlib_state"


def with_interface(mod: Any, network: Network) -> Any:
    """Add functions to a Relax module that return the network's signature and first state."""
    text = np.frombuffer(network.interface.model_dump_json().encode(), "uint8")
    builder = relax.BlockBuilder()
    with builder.function(SIGNATURE, []):
        builder.emit_func_output(constant_of(text))
    with builder.function(STATE, []):
        builder.emit_func_output(relax.Tuple([constant_of(array) for array in network.state]))
    result = tvm.IRModule(mod.functions, attrs=mod.attrs)
    result.update(builder.get())
    return result


def signature_of(machine: Any) -> Signature | None:
    """Return the signature of a loaded network; ``None`` if an older costlib compiled it."""
    try:
        text = machine[SIGNATURE]()
    except (AttributeError, ValueError, RuntimeError):
        return None
    return Signature.model_validate_json(text.numpy().tobytes())


def state_of(machine: Any) -> list[Any]:
    """Return copies of a loaded network's first state."""
    return [tvm.runtime.tensor(tensor.numpy()) for tensor in machine[STATE]()]
