"""Matrix products, of floating-point and of quantised numbers."""

from __future__ import annotations

import numpy as np

from costlib.workloads.importers.onnx.activations import gelu, tanh_gelu
from costlib.workloads.importers.onnx.node import MICROSOFT, Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    SMALL_FLOATS,
    Tensor,
    emitted,
    matmul,
    maximum,
    op,
    sigmoid,
    tanh,
)


@converts("MatMul")
def _matmul(node: Node) -> Tensor:
    return matmul(node[0], node[1])


@converts("Gemm")
@converts("Gemm", "FusedGemm", domain=MICROSOFT)
def _gemm(node: Node) -> Tensor:
    a, b, c = node[0], node[1], node.get(2)
    a = a.swap() if node.attribute("transA", 0) else a
    b = b.swap() if node.attribute("transB", 0) else b
    wide = "float32" if a.dtype in SMALL_FLOATS else a.dtype
    product = emitted(op.matmul(a.expr, b.expr, out_dtype=wide))
    if node.attribute("alpha", 1.0) != 1:
        product = product * node.attribute("alpha")
    if c is not None:
        beta = node.attribute("beta", 1.0)
        c = c.cast(wide)
        product = product + (c if beta == 1 else c * beta)
    product = product.cast(a.dtype)
    return activated(product, node.attribute("activation"))


def activated(x: Tensor, activation: str | None) -> Tensor:
    """Apply an activation that ONNX Runtime fused into the operator before it."""
    match activation:
        case None | "":
            return x
        case "Relu":
            return maximum(x, 0)
        case "Tanh":
            return tanh(x)
        case "Sigmoid":
            return sigmoid(x)
        case "Gelu":
            return gelu(x)
        case "FastGelu":
            return tanh_gelu(x)
    raise Refused(f"fused with {activation} is not supported; save the model without fusing")


@converts("FusedMatMul", "TransposeMatMul", domain=MICROSOFT)
def _fused_matmul(node: Node) -> Tensor:
    node.refuse_attributes(transBatchA=0, transBatchB=0)
    a, b = node[0], node[1]
    a = a.swap() if node.attribute("transA", 0) and a.ndim > 1 else a
    b = b.swap() if node.attribute("transB", 0) and b.ndim > 1 else b
    product = matmul(a, b)
    alpha = node.attribute("alpha", 1.0)
    return product if alpha == 1 else product * alpha


@converts("Einsum")
def _einsum(node: Node) -> Tensor:
    tensors = node.tensors()
    inputs, output = _explicit(node.attribute("equation"), tensors)
    factors = [_diagonal(x, letters) for x, letters in zip(tensors, inputs, strict=True)]
    result, indices = factors[0]
    for i, factor in enumerate(factors[1:], 2):
        wanted = set(output).union(*inputs[i:])
        result, indices = _contracted(result, indices, *factor, wanted)
    gone = [i for i, letter in enumerate(indices) if letter not in output]
    if gone:
        kept = [n for i, n in enumerate(result.shape) if i not in gone]
        result = result.sum(gone).reshape(kept)
        indices = [letter for letter in indices if letter in output]
    return result.transpose([indices.index(letter) for letter in output])


def _explicit(equation: str, tensors: list[Tensor]) -> tuple[list[list[str]], list[str]]:
    """Return the letters of each input and of the output, dots written as capital digits."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    inputs, dots = [], 0
    for term, x in zip(terms, tensors, strict=True):
        head, ellipsis, tail = term.partition("...")
        count = x.ndim - len(head) - len(tail) if ellipsis else 0
        dots = max(dots, count)
        inputs.append([*head, *(f".{count - i}" for i in range(count)), *tail])
    spread = [f".{dots - i}" for i in range(dots)]
    if arrow:
        head, ellipsis, tail = right.partition("...")
        return inputs, [*head, *(spread if ellipsis else []), *tail]
    letters = "".join(terms).replace(".", "")
    return inputs, [*spread, *sorted(c for c in set(letters) if letters.count(c) == 1)]


def _diagonal(x: Tensor, letters: list[str]) -> tuple[Tensor, list[str]]:
    """Take diagonals where a letter stands for several axes of one input."""
    from costlib.workloads.importers.onnx.tensors import computed

    unique = list(dict.fromkeys(letters))
    if len(unique) == len(letters):
        return x, letters
    shape = [x.shape[letters.index(letter)] for letter in unique]
    return computed(
        "diagonal",
        shape,
        lambda data, *i: data[tuple(i[unique.index(letter)] for letter in letters)],
        x,
    ), unique


def _contracted(
    a: Tensor, a_letters: list[str], b: Tensor, b_letters: list[str], wanted: set[str]
) -> tuple[Tensor, list[str]]:
    """Multiply two tensors and add up along the axes that nothing else wants, by one product."""
    size = dict(zip(b_letters, b.shape, strict=True))
    for letter, n in zip(a_letters, a.shape, strict=True):
        size[letter] = max(n, size.get(letter, 1))

    def alone(x: Tensor, mine: list[str], theirs: list[str]) -> tuple[Tensor, list[str]]:
        gone = [i for i, c in enumerate(mine) if c not in theirs and c not in wanted]
        kept = [n for i, n in enumerate(x.shape) if i not in gone]
        return x.sum(gone).reshape(kept), [c for i, c in enumerate(mine) if i not in gone]

    a, a_letters = alone(a, a_letters, b_letters)
    b, b_letters = alone(b, b_letters, a_letters)
    both = [c for c in a_letters if c in b_letters]
    batch = [c for c in both if c in wanted]
    inner = [c for c in both if c not in wanted]
    rows = [c for c in a_letters if c not in both]
    columns = [c for c in b_letters if c not in both]

    def arranged(x: Tensor, mine: list[str], *groups: list[str]) -> Tensor:
        order = [c for group in groups for c in group]
        x = x.transpose([mine.index(c) for c in order])
        x = x.broadcast([size[c] for c in order])
        return x.reshape([*(size[c] for c in groups[0]), *(_count(size, g) for g in groups[1:])])

    left = arranged(a, a_letters, batch, rows, inner)
    right = arranged(b, b_letters, batch, inner, columns)
    product = left * right if not inner else matmul(left, right)
    letters = [*batch, *rows, *columns]
    return product.reshape([size[c] for c in letters]), letters


def _count(size: dict[str, int], letters: list[str]) -> int:
    return int(np.prod([size[c] for c in letters], dtype=np.int64))
