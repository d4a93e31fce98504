"""Relax modules: objects, TVMScript text and TVM's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.errors import CostlibError, InputError, UnsupportedModelError, quoted
from costlib.tvm_compat import relax, tirx, tvm
from costlib.tvm_compat.api import argument_shapes, module_from_json
from costlib.tvm_compat.guard import survives
from costlib.workloads.folding import static_type
from costlib.workloads.network import InputSpec, Network


def import_relax(mod: Any, name: str) -> Network:
    """Take a Relax module as a network of that name; see :func:`costlib.workloads.load_network`.

    It has a ``main`` over tensors of static shape, parameters bound as constants. A single
    ``PrimFunc`` called ``main`` will do: it is called with its arguments, results last.
    """
    names = {variable.name_hint for variable in mod.get_global_vars()}
    if "main" in names and isinstance(mod["main"], tirx.PrimFunc):
        mod = _called(mod, name)
    return Network(name, mod, input_specs(mod, name))


def import_script(path: Path) -> Network:
    """Read a module from TVMScript text; the file is executed, as any Python file would be."""
    try:
        found = tvm.script.from_source(path.read_text())
    except Exception as error:
        raise InputError(f"{path}: not TVMScript: {quoted(error)}") from None
    if not isinstance(found, tvm.IRModule):
        found = tvm.IRModule({"main": found})
    return import_relax(found, path.stem)


def import_json(path: Path) -> Network:
    """Read a module from TVM's JSON (``tvm.ir.save_json``)."""

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


def input_specs(mod: Any, name: str, highs: Sequence[int] = ()) -> tuple[InputSpec, ...]:
    """Describe the inputs of a Relax module; raise unless its ``main`` takes static tensors.

    ``highs`` are exclusive upper bounds of the inputs' values, as far as they are known.
    """
    if "main" not in [variable.name_hint for variable in mod.get_global_vars()]:
        raise UnsupportedModelError(f"{name}: the module has no function called 'main'")
    specs = []
    for i, param in enumerate(mod["main"].params):
        shape, dtype = static_type(param)
        if shape is None:
            raise UnsupportedModelError(f"{name}: {_what_is_dynamic(param)}")
        bound = {"high": highs[i]} if i < len(highs) else {}
        specs.append(InputSpec(str(param.name), dtype, shape, **bound))
    return tuple(specs)


def _what_is_dynamic(param: Any) -> str:
    extents = getattr(getattr(param.ty, "shape", None), "values", None)
    if extents is None:
        return f"input '{param.name}' is no tensor of known shape"
    axis, extent = next((i, n) for i, n in enumerate(extents) if not hasattr(n, "value"))
    return (
        f"dimension {axis} of input '{param.name}' is dynamic ({extent}); "
        "fix it to a number before importing"
    )


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
