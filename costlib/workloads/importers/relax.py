"""Relax modules: objects, TVMScript text and TVM's JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from costlib.errors import CostlibError, InputError, UnsupportedModelError, quoted
from costlib.tvm_compat import relax, tirx, tvm
from costlib.tvm_compat.api import argument_shapes, module_from_json
from costlib.tvm_compat.guard import survives
from costlib.workloads.importers.signature import input_specs
from costlib.workloads.network import Network


def import_relax(mod: Any, name: str) -> Network:
    """Take a Relax module as a network.

    Parameters
    ----------
    mod
        With a ``main`` over tensors of static shape, parameters bound as constants. A single
        ``PrimFunc`` called ``main`` will do: it is called with its arguments, results last.
    name
        The network's name.

    Raises
    ------
    UnsupportedModelError
        There is no such ``main``.
    """
    names = {variable.name_hint for variable in mod.get_global_vars()}
    if "main" in names and isinstance(mod["main"], tirx.PrimFunc):
        mod = _called(mod, name)
    return Network(name, mod, input_specs(mod, name))


def import_script(path: Path) -> Network:
    """Read a module from TVMScript text; the file is executed, as any Python file would be.

    Raises
    ------
    InputError
        It is not TVMScript.
    UnsupportedModelError
        See :func:`import_relax`.
    """
    try:
        found = tvm.script.from_source(path.read_text())
    except Exception as error:
        raise InputError(f"{path}: not TVMScript: {quoted(error)}") from None
    if not isinstance(found, tvm.IRModule):
        found = tvm.IRModule({"main": found})
    return import_relax(found, path.stem)


def import_json(path: Path) -> Network:
    """Read a module from TVM's JSON (``tvm.ir.save_json``).

    Raises
    ------
    InputError
        It is not TVM's JSON, or damaged, or not of a module.
    UnsupportedModelError
        See :func:`import_relax`.
    """

    def read() -> Network:
        found = module_from_json(path.read_text())
        if not isinstance(found, tvm.IRModule):
            raise InputError(f"{path}: holds a {type(found).__name__}, not an IRModule")
        return import_relax(found, path.stem)

    if not survives(read):
        raise InputError(f"{path}: damaged, TVM does not survive reading it")
    try:
        return read()
    except CostlibError:
        raise
    except Exception as error:
        raise InputError(f"{path}: not a module saved by this TVM: {quoted(error)}") from None


def _called(mod: Any, name: str) -> Any:
    """Return a Relax module that calls a ``PrimFunc`` with its last argument as output."""
    try:
        *inputs, output = [relax.TensorType(shape, dtype) for dtype, shape in argument_shapes(mod)]
    except Exception as error:
        raise UnsupportedModelError(
            f"{name}: 'main' takes something besides buffers of static shape: {quoted(error)}"
        ) from None
    builder = relax.BlockBuilder()
    function = builder.add_func(mod["main"].without_attr("global_symbol"), "operator")
    params = [relax.Var(f"x{i}", kind) for i, kind in enumerate(inputs)]
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(relax.call_tir(function, params, output))
        builder.emit_func_output(result)
    return builder.get()
