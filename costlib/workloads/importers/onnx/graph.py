"""Walking the graph of an ONNX model, one node after the other."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, MutableMapping
from typing import TypeAlias

import numpy as np
import onnx
from onnx.external_data_helper import uses_external_data

from costlib.errors import quoted
from costlib.workloads.importers.onnx import control
from costlib.workloads.importers.onnx.casting import DTYPES
from costlib.workloads.importers.onnx.folding import (
    MOST_FOLDED,
    attribute_values,
    elements,
    folded,
    is_folded,
)
from costlib.workloads.importers.onnx.inferred import disagreement, inferred, type_of
from costlib.workloads.importers.onnx.node import CONVERTERS, Node, Refused, Value
from costlib.workloads.importers.onnx.tensors import (
    MOST_ELEMENTS,
    Tensor,
    constant,
    numpy_dtype,
)

Scope: TypeAlias = MutableMapping[str, Value]

_MOST_NODES = 50_000
_MOST_DEPTH = 40


class RefusedNode(Exception):  # noqa: N818 - see Refused
    """A node that cannot be imported, with its operator."""

    def __init__(self, operator: str, name: str, reason: str) -> None:
        self.operator, self.name, self.reason = operator, name, reason
        label = f"{operator} ('{name}')" if name else operator
        super().__init__(f"{label} {reason}")


class Walker:
    """Imports nodes into the Relax function that is being built.

    Parameters
    ----------
    opsets
        Version of the operators of each domain.
    functions
        Those that the model defines itself, by domain, name and overload.
    weights
        Initializers that the model only refers to; each is taken out when it is met.
    is_exact
        See :class:`~costlib.workloads.importers.onnx.node.Node`.
    """

    def __init__(
        self,
        opsets: dict[str, int],
        functions: dict[tuple[str, str, str], onnx.FunctionProto],
        weights: dict[str, np.ndarray],
        depth: int = 0,
        counter: list[int] | None = None,
        *,
        is_exact: bool = False,
    ) -> None:
        self.opsets, self.functions, self.weights, self.depth = opsets, functions, weights, depth
        self.is_exact = is_exact
        self.counter = [0] if counter is None else counter

    def graph(self, graph: onnx.GraphProto, scope: Scope) -> list[Value]:
        """Import a graph in a scope that has its inputs; return its outputs."""
        for tensor in graph.initializer:
            scope[tensor.name] = self._initializer(tensor)
        for sparse in graph.sparse_initializer:
            scope[sparse.values.name] = _sparse(sparse)
        self.nodes(graph.node, scope)
        return [_named(scope, output.name, "the graph's output") for output in graph.output]

    def _initializer(self, tensor: onnx.TensorProto) -> Tensor:
        if uses_external_data(tensor) and tensor.name in self.weights:
            return constant(self.weights.pop(tensor.name))
        return constant(onnx.numpy_helper.to_array(tensor))

    def inner(self, graph: onnx.GraphProto, scope: Scope, inputs: Iterable[Value]) -> list[Value]:
        """Import the body of a control-flow operator, which sees what is around it."""
        names = [value.name for value in graph.input]
        return self.graph(graph, ChainMap(dict(zip(names, inputs, strict=True)), scope))

    def nodes(self, nodes: Iterable[onnx.NodeProto], scope: Scope) -> None:
        """Import nodes; their outputs are put into the scope."""
        for proto in nodes:
            self.counter[0] += 1
            if self.counter[0] > _MOST_NODES:
                raise RefusedNode(
                    proto.op_type, proto.name, f"is node {_MOST_NODES} of the unrolled model"
                )
            try:
                results = self._results(proto, scope)
            except Refused as reason:
                raise RefusedNode(proto.op_type, proto.name, str(reason)) from None
            except (RefusedNode, KeyboardInterrupt, MemoryError):
                raise
            except Exception as error:
                raise RefusedNode(
                    proto.op_type, proto.name, f"cannot be imported: {quoted(error)}"
                ) from error
            for name, value in zip(proto.output, results, strict=False):
                if name:
                    scope[name] = value

    def _results(self, proto: onnx.NodeProto, scope: Scope) -> list[Value]:
        values = [_named(scope, name, "its input") if name else None for name in proto.input]
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        key = (domain, proto.op_type, proto.overload)
        if key in self.functions:
            return self._expanded(self.functions[key], proto, values)
        if (domain, proto.op_type) in control.CONVERTERS:
            return control.CONVERTERS[domain, proto.op_type](self, proto, scope, values)
        expected = inferred(proto, values, self.opsets)
        types = [expected.get(name) for name in proto.output]
        if max(map(elements, types), default=0) > MOST_ELEMENTS:
            raise Refused(f"makes a tensor of more than {MOST_ELEMENTS} elements")
        results = self._computed(proto, values, domain, max(map(elements, types), default=0))
        for kind, value in zip(types, results, strict=False):
            problem = disagreement(kind, value)
            if problem is not None:
                raise Refused(problem)
        return [_without_empty(value) for value in results]

    def _computed(
        self, proto: onnx.NodeProto, values: list[Value], domain: str, size: int
    ) -> list[Value]:
        arrays = [value.array if isinstance(value, Tensor) else None for value in values]
        is_known = all(a is not None or v is None for a, v in zip(arrays, values, strict=True))
        converter = CONVERTERS.get((domain, proto.op_type))
        if is_known and size <= MOST_FOLDED and not domain and is_folded(proto, arrays):
            try:
                return [constant(result) for result in folded(proto, arrays, self.opsets)]
            except Refused:
                if converter is None:
                    raise
        if converter is None:
            return self._by_schema(proto, values, domain)
        _check_dtypes(values)
        node = Node(
            proto.op_type,
            domain,
            self.opsets.get(domain, 1),
            values,
            attribute_values(proto),
            [bool(name) for name in proto.output],
            self.is_exact,
        )
        result = converter(node)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def _by_schema(self, proto: onnx.NodeProto, values: list[Value], domain: str) -> list[Value]:
        """Import an operator by the simpler ones that ONNX defines it by."""
        version = self.opsets.get(domain, 1)
        try:
            schema = onnx.defs.get_schema(proto.op_type, version, domain)
        except onnx.defs.SchemaError:
            raise Refused("is not supported") from None
        if schema.has_function:
            versions = schema.function_opset_versions
            chosen = max((v for v in versions if v <= version), default=min(versions))
            body = onnx.FunctionProto.FromString(schema.get_function_with_opset_version(chosen))
        elif schema.has_context_dependent_function:
            versions = schema.context_dependent_function_opset_versions
            chosen = max((v for v in versions if v <= version), default=min(versions))
            types = [
                b"" if value is None else type_of(value).SerializeToString() for value in values
            ]
            encoded = schema.get_context_dependent_function_with_opset_version(
                chosen, proto.SerializeToString(), types
            )
            if not encoded:
                raise Refused("is not supported")
            body = onnx.FunctionProto.FromString(encoded)
        else:
            raise Refused("is not supported")
        defaults = {
            name: attribute.default_value
            for name, attribute in schema.attributes.items()
            if attribute.default_value.type
        }
        return self._expanded(body, proto, values, defaults)

    def _expanded(
        self,
        function: onnx.FunctionProto,
        proto: onnx.NodeProto,
        values: list[Value],
        defaults: dict[str, onnx.AttributeProto] | None = None,
    ) -> list[Value]:
        """Import the body of a function in place of a node that calls it."""
        if self.depth >= _MOST_DEPTH:
            raise Refused(f"calls functions more than {_MOST_DEPTH} deep")
        given = {**(defaults or {}), **{a.name: a for a in function.attribute_proto}}
        given |= {a.name: a for a in proto.attribute}
        padded = [*values, *[None] * (len(function.input) - len(values))]
        scope: Scope = dict(zip(function.input, padded, strict=False))
        opsets = {entry.domain: entry.version for entry in function.opset_import}
        imported = {**self.opsets, **opsets}
        walker = Walker(
            imported,
            self.functions,
            self.weights,
            self.depth + 1,
            self.counter,
            is_exact=self.is_exact,
        )
        walker.nodes([_with_attributes(node, given) for node in function.node], scope)
        return [scope.get(name) for name in function.output]


def _with_attributes(node: onnx.NodeProto, given: dict[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """Copy a node of a function, references to the function's attributes replaced by these."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    for attribute in node.attribute:
        value = onnx.AttributeProto()
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue
            value.CopyFrom(given[attribute.ref_attr_name])
            value.name = attribute.name
        else:
            value.CopyFrom(attribute)
            for graph in [value.g] if value.HasField("g") else value.graphs:
                replaced = [_with_attributes(inner, given) for inner in graph.node]
                del graph.node[:]
                graph.node.extend(replaced)
        copy.attribute.append(value)
    return copy


def _named(scope: Scope, name: str, what: str) -> Value:
    if name not in scope:
        raise Refused(f"cannot be imported: {what} '{name}' is nowhere computed")
    return scope[name]


def _sparse(tensor: onnx.SparseTensorProto) -> Tensor:
    values = onnx.numpy_helper.to_array(tensor.values)
    places = onnx.numpy_helper.to_array(tensor.indices)
    dense = np.zeros(tuple(tensor.dims), values.dtype)
    if places.ndim == 1:
        dense.reshape(-1)[places] = values
    else:
        dense[tuple(places.T)] = values
    return constant(dense)


def _check_dtypes(values: Iterable[Value]) -> None:
    for value in values:
        if isinstance(value, Tensor) and value.dtype not in DTYPES:
            kind = "text" if value.dtype == "object" or value.dtype[0] == "<" else value.dtype
            raise Refused(f"computes with {kind}, which is not supported")


def _without_empty(value: Value) -> Value:
    if isinstance(value, Tensor) and value.array is None and value.size == 0:
        return constant(np.zeros(value.shape, numpy_dtype(value.dtype)))
    return value
