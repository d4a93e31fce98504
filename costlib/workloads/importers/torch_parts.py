"""What the graph of a ``torch.export`` program takes and returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from costlib.errors import UnsupportedModelError
from costlib.workloads.signature import Signature, TensorSpec, Tree, leaf


@dataclass(frozen=True)
class Variable:
    """An input or a state, by name."""

    name: str


@dataclass(frozen=True)
class Parts:
    """What a program's graph takes and returns.

    Attributes
    ----------
    given
        What each placeholder is: a tensor or number that is constant, or the name of a variable.
    state
        Buffers that the program changes, as they are at first.
    returned
        Which results of the graph are outputs, and which, by name, new states.
    """

    signature: Signature
    given: Sequence[Any]
    state: Mapping[str, Any]
    returned: Sequence[str | None]

    def initial(self) -> dict[str, Any]:
        """Return the state that a first call starts from, for it to change."""
        return {name: tensor.clone() for name, tensor in self.state.items()}

    @classmethod
    def of(cls, program: Any, sizes: Mapping[str, int] | None = None) -> Parts:
        """Return the parts of a program; symbols that have no size here may not shape a tensor."""
        recorded = {node.name: node.meta.get("val") for node in program.graph.nodes}
        given, inputs, state, arguments = _taken(program, recorded, sizes)
        returned, outputs, results = _given_back(program, recorded, sizes)
        call = program.call_spec
        args, kwargs = _tree(call.in_spec, iter(arguments))["tuple"]
        signature = Signature(
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            state=tuple(_spec(name, tensor) for name, tensor in state.items()),
            arguments=args,
            keywords=kwargs,
            result=_tree(call.out_spec, iter(results)),
        )
        return cls(signature, given, state, returned)


def _taken(
    program: Any, recorded: Mapping[str, Any], sizes: Mapping[str, int] | None
) -> tuple[list[Any], list[TensorSpec], dict[str, Any], list[Tree]]:
    """Return what each placeholder is, the inputs, the first state and the arguments."""
    from torch.export.graph_signature import InputKind, TensorArgument

    changed = set(program.graph_signature.buffers_to_mutate.values())
    tensors = {**program.state_dict, **program.constants}
    given: list[Any] = []
    inputs: list[TensorSpec] = []
    state: dict[str, Any] = {}
    arguments: list[Tree] = []
    for spec in program.graph_signature.input_specs:
        is_tensor = isinstance(spec.arg, TensorArgument)
        if spec.kind == InputKind.TOKEN:
            given.append(None)
        elif spec.kind == InputKind.USER_INPUT and is_tensor:
            arguments.append(leaf(len(inputs)))
            inputs.append(_spec(spec.arg.name, recorded[spec.arg.name], sizes))
            given.append(Variable(spec.arg.name))
        elif spec.kind == InputKind.USER_INPUT:
            arguments.append({"constant": spec.arg.value})
            given.append(spec.arg.value)
        elif spec.kind == InputKind.BUFFER and spec.target in changed:
            state[spec.target] = tensors[spec.target]
            given.append(Variable(spec.target))
        elif is_tensor:
            given.append(tensors[spec.target])
        else:
            raise UnsupportedModelError("it holds an object that is no tensor")
    return given, inputs, state, arguments


def _given_back(
    program: Any, recorded: Mapping[str, Any], sizes: Mapping[str, int] | None
) -> tuple[list[str | None], list[TensorSpec], list[Tree]]:
    """Return what becomes of each of the graph's results, the outputs, and the call's results."""
    from torch.export.graph_signature import OutputKind, TensorArgument

    returned: list[str | None] = []
    outputs: list[TensorSpec] = []
    results: list[Tree] = []
    for spec in program.graph_signature.output_specs:
        if spec.kind == OutputKind.USER_INPUT_MUTATION:
            raise UnsupportedModelError(
                f"it writes into its input '{spec.target}'; return the new value instead"
            )
        if spec.kind == OutputKind.BUFFER_MUTATION:
            returned.append(spec.target)
        elif spec.kind == OutputKind.TOKEN:
            returned.append("")
        elif spec.kind != OutputKind.USER_OUTPUT:
            raise UnsupportedModelError(f"it returns a {spec.kind.name.lower()}")
        elif isinstance(spec.arg, TensorArgument):
            results.append(leaf(len(outputs)))
            returned.append(None)
            outputs.append(_spec(f"output{len(outputs)}", recorded[spec.arg.name], sizes))
        else:
            results.append({"constant": spec.arg.value})
            returned.append("")
    if not outputs:
        raise UnsupportedModelError("it returns no tensor")
    return returned, outputs, results


def _spec(name: str, tensor: Any, sizes: Mapping[str, int] | None = None) -> TensorSpec:
    from costlib.workloads.importers.aten.graph import dtype_of

    shape = [_extent(extent, sizes or {}) for extent in tensor.shape]
    if None in shape:
        raise UnsupportedModelError(f"the shape of {name} depends on data")
    return TensorSpec(name=name, dtype=dtype_of(tensor), shape=tuple(shape))


def _extent(extent: Any, sizes: Mapping[str, int]) -> int | None:
    """Return an extent, given those of symbols; ``None`` if it depends on others."""
    if isinstance(extent, int):
        return extent
    expression = extent.node.expr
    found = expression.subs({s: sizes[str(s)] for s in expression.free_symbols if str(s) in sizes})
    return int(found) if found.is_Integer else None


def _tree(spec: Any, items: Iterator[Tree]) -> Tree:
    """Write PyTorch's description of a nest as ours; what it cannot name is a dict or a tuple."""
    if spec.is_leaf():
        return next(items)
    children = [_tree(child, items) for child in spec.children()]
    if spec.type is list:
        return {"list": children}
    keys = spec.context
    if spec.type is not tuple and isinstance(keys, (list, tuple)) and keys:
        keys = keys[0] if isinstance(keys[0], (list, tuple)) else keys
        if len(keys) == len(children) and all(isinstance(key, str) for key in keys):
            return {"dict": dict(zip(keys, children, strict=True))}
    return {"dict": {}} if spec.type is dict else {"tuple": children}
