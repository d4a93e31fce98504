"""How a network is called: the tree of its arguments, that of its results, and its tensors.

A tree is JSON: ``{"leaf": 0}`` is the first tensor, ``{"constant": null}`` something that is not
one, and ``{"tuple": [...]}``, ``{"list": [...]}`` and ``{"dict": {...}}`` hold others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from costlib.errors import InputError
from costlib.frozen import Frozen

Tree = dict[str, Any]


class TensorSpec(Frozen):
    """A tensor that goes in or comes out.

    Attributes
    ----------
    name, dtype, shape
        The dtype is spelt as numpy does, e.g. ``"float32"`` or ``"bfloat16"``.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class Signature(Frozen):
    """What a network takes and returns.

    Attributes
    ----------
    inputs, outputs
        Its tensors, in order.
    state
        Tensors that it keeps from call to call; the Relax function takes them after the inputs
        and returns them after the outputs.
    arguments, keywords
        Trees of the positional arguments, a tuple, and of the named ones, a dict.
    result
        Tree of what a call returns.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    state: tuple[TensorSpec, ...] = ()
    arguments: Tree
    keywords: Tree = Field(default_factory=lambda: {"dict": {}})
    result: Tree

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the inputs of a call in order; named arguments may be given by position, too.

        Raises
        ------
        InputError
            The arguments are not of this shape; the message says which one is wrong.
        """
        names = list(self.keywords["dict"])
        positional = len(self.arguments["tuple"])
        extra = args[positional:]
        given = dict(zip(names, extra, strict=False)) | dict(kwargs)
        if len(extra) > len(names):
            raise InputError(f"{len(args)} arguments were given; {self}")
        found: dict[int, Any] = {}
        _flatten(self.arguments, tuple(args[:positional]), "arguments", found)
        _flatten(self.keywords, given, "named arguments", found)
        return [found[i] for i in range(len(self.inputs))]

    def unflatten(self, outputs: Sequence[Any]) -> Any:
        """Return the result of a call, made of its outputs in order."""
        return built(self.result, outputs)

    def __str__(self) -> str:
        taken = ", ".join(map(str, self.inputs)) or "nothing"
        returned = ", ".join(map(str, self.outputs)) or "nothing"
        return f"the network takes {taken}, and returns {returned}"


def flat_signature(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> Signature:
    """Return the signature of a network that takes tensors in order and returns them so."""
    leaves = [leaf(i) for i in range(len(outputs))]
    return Signature(
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        arguments={"tuple": [leaf(i) for i in range(len(inputs))]},
        result=leaves[0] if len(leaves) == 1 else {"tuple": leaves},
    )


def leaf(number: int) -> Tree:
    """Return the tree that is one tensor."""
    return {"leaf": number}


def tree_of(value: Any, as_leaf: Callable[[Any], int | None]) -> Tree:
    """Describe a nest of tuples, lists and mappings.

    Parameters
    ----------
    value
        The nest.
    as_leaf
        Gives the number of a tensor, and ``None`` for anything else.

    Raises
    ------
    InputError
        There is something in it that is none of these, no number, no text and not ``None``.
    """
    if (number := as_leaf(value)) is not None:
        return leaf(number)
    if isinstance(value, Mapping):
        return {"dict": {str(key): tree_of(item, as_leaf) for key, item in value.items()}}
    if isinstance(value, (tuple, list)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [tree_of(item, as_leaf) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"constant": value}
    raise InputError(f"a {type(value).__name__} among inputs or outputs is no tensor")


def leaves(tree: Tree) -> Iterator[int]:
    """Iterate over the numbers of a tree's tensors in order."""
    ((kind, content),) = tree.items()
    if kind == "leaf":
        yield content
    elif kind == "dict":
        for item in content.values():
            yield from leaves(item)
    elif kind != "constant":
        for item in content:
            yield from leaves(item)


def _flatten(tree: Tree, value: Any, where: str, found: dict[int, Any]) -> None:
    ((kind, content),) = tree.items()
    if kind == "leaf":
        found[content] = value
    elif kind == "constant":
        if value != content:
            raise InputError(f"{where}: {content!r} is part of the network; {value!r} was given")
    elif kind == "dict":
        given = set(value) if isinstance(value, Mapping) else None
        if given != set(content):
            wanted = ", ".join(content) or "none"
            got = type(value).__name__ if given is None else ", ".join(map(str, value)) or "none"
            raise InputError(f"{where}: wanted are {wanted}; given: {got}")
        for key, item in content.items():
            _flatten(item, value[key], f"{where}[{key!r}]", found)
    else:
        if not isinstance(value, (tuple, list)) or len(value) != len(content):
            got = f"{len(value)}" if isinstance(value, (tuple, list)) else type(value).__name__
            raise InputError(f"{where}: a {kind} of {len(content)} is wanted; given: {got}")
        for i, (item, part) in enumerate(zip(content, value, strict=True)):
            _flatten(item, part, f"{where}[{i}]", found)


def built(tree: Tree, tensors: Sequence[Any]) -> Any:
    """Put tensors into a tree."""
    ((kind, content),) = tree.items()
    if kind == "leaf":
        return tensors[content]
    if kind == "constant":
        return content
    if kind == "dict":
        return {key: built(item, tensors) for key, item in content.items()}
    items = [built(item, tensors) for item in content]
    return items if kind == "list" else tuple(items)
