"""Relax modules: objects, TVMScript text and TVM's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.errors import CostlibError, InputError, UnsupportedModelError, quoted
from costlib.tvm_compat import tirx, tvm
from costlib.tvm_compat.api import module_from_json
from costlib.tvm_compat.guard import survives
from costlib.workloads.folding import static_type
from costlib.workloads.importers.primitive import called, with_root
from costlib.workloads.importers.script import parse_script
from costlib.workloads.network import InputSpec, Network


def import_relax(mod: Any, name: str) -> Network:
    """Take a Relax module as a network of that name; see :func:`costlib.workloads.load_network`.

    It has a ``main`` over tensors of static shape, parameters bound as constants. A single
    ``PrimFunc`` called ``main`` will do: the buffers that it writes are the outputs.
    """
    mod = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for variable, function in mod.functions.items():
        if isinstance(function, tirx.PrimFunc):
            mod.update_func(variable, with_root(function))
    names = {variable.name_hint for variable in mod.get_global_vars()}
    if "main" in names and isinstance(mod["main"], tirx.PrimFunc):
        mod = called(mod, name)
    return Network(name, mod, input_specs(mod, name))


def import_script(path: Path) -> Network:
    """Read a module from TVMScript text, which is parsed and never executed."""

    def read() -> Network:
        found = parse_script(path)
        if not isinstance(found, tvm.IRModule):
            found = tvm.IRModule({"main": found})
        return import_relax(found, path.stem)

    if not survives(read):
        raise InputError(f"{path}: TVM does not survive reading it")
    return read()


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
