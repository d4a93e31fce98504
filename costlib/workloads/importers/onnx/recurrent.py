"""Recurrent layers, unrolled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from costlib.workloads.importers.onnx.activations import hard_sigmoid, softplus
from costlib.workloads.importers.onnx.node import Node, Refused, converts
from costlib.workloads.importers.onnx.tensors import (
    Tensor,
    absolute,
    constant,
    exp,
    matmul,
    maximum,
    minimum,
    numpy_dtype,
    sigmoid,
    stacked,
    tanh,
    where,
)

Activation = Callable[[Tensor], Tensor]

_MOST_STEPS = 512

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
_DEFAULT_PARAMETERS = {
    "LeakyRelu": (0.01, 0.0),
    "ThresholdedRelu": (1.0, 0.0),
    "HardSigmoid": (0.2, 0.5),
    "Elu": (1.0, 0.0),
    "ScaledTanh": (1.0, 1.0),
    "Affine": (1.0, 0.0),
}


def _activation(name: str, a: float, b: float) -> Activation:
    functions: dict[str, Activation] = {
        "Affine": lambda x: x * a + b,
        "Elu": lambda x: where(x > 0, x, (exp(minimum(x, 0)) - 1) * a),
        "HardSigmoid": lambda x: hard_sigmoid(x, a, b),
        "LeakyRelu": lambda x: where(x < 0, x * a, x),
        "Relu": lambda x: maximum(x, 0),
        "ScaledTanh": lambda x: tanh(x * b) * a,
        "Sigmoid": sigmoid,
        "Softplus": softplus,
        "Softsign": lambda x: x / (absolute(x) + 1),
        "Tanh": tanh,
        "ThresholdedRelu": lambda x: where(x > a, x, 0),
    }
    known = {key.lower(): function for key, function in functions.items()}
    if name.lower() not in known:
        raise Refused(f"with the activation {name} is not supported")
    return known[name.lower()]


def _activations(node: Node, directions: int) -> list[list[Activation]]:
    names = list(node.attribute("activations", ()))
    names = names or _DEFAULTS[node.operator] * directions
    alphas = list(node.attribute("activation_alpha", ()))
    betas = list(node.attribute("activation_beta", ()))
    functions = []
    for name in names:
        key = next((k for k in _DEFAULT_PARAMETERS if k.lower() == name.lower()), None)
        a, b = _DEFAULT_PARAMETERS.get(key or "", (0.0, 0.0))
        if key is not None:
            a = alphas.pop(0) if alphas else a
            if key in ("HardSigmoid", "ScaledTanh", "Affine"):
                b = betas.pop(0) if betas else b
        functions.append(_activation(name, a, b))
    each = len(functions) // directions
    return [functions[i * each : (i + 1) * each] for i in range(directions)]


@converts("RNN", "GRU", "LSTM")
def _recurrent(node: Node) -> list[Tensor]:
    x, weight = node[0], node[1]
    by_batch = node.attribute("layout", 0)
    x = x.transpose([1, 0, 2]) if by_batch else x
    steps, batch, _ = x.shape
    directions = weight.shape[0]
    size = node.attribute("hidden_size", node[2].shape[-1])
    if steps > _MOST_STEPS:
        raise Refused(f"over {steps} steps is not supported; up to {_MOST_STEPS} are unrolled")
    zeros = constant(np.zeros((directions, batch, size), numpy_dtype(x.dtype)))
    states = []
    for index in (5, 6) if node.operator == "LSTM" else (5,):
        given = node.get(index)
        state = zeros if given is None else given.transpose([1, 0, 2]) if by_batch else given
        states.append(state)
    functions = _activations(node, directions)
    backwards = str(node.attribute("direction", "forward")) == "reverse"
    sequences, finals = [], []
    for d in range(directions):
        order = range(steps)[::-1] if backwards or d else range(steps)
        start = [_part(state, d) for state in states]
        outputs, last = _Layer(node, d, size, functions[d]).run(x, order, start)
        sequences.append(stacked(outputs, 0))
        finals.append(last)
    y = stacked(sequences, 1)
    results = [y, *(stacked(list(last), 0) for last in zip(*finals, strict=True))]
    if by_batch:
        results = [y.transpose([2, 0, 1, 3]), *(last.transpose([1, 0, 2]) for last in results[1:])]
    return results


def _part(x: Tensor, index: int) -> Tensor:
    return x.slice(0, index, index + 1).reshape(x.shape[1:])


class _Layer:
    """One direction of a recurrent layer."""

    def __init__(self, node: Node, direction: int, size: int, functions: list[Activation]) -> None:
        gates = _GATES[node.operator]
        self.node, self.size, self.functions = node, size, functions
        self.weight = _part(node[1], direction).transpose([1, 0])
        self.recurrence = _part(node[2], direction).transpose([1, 0])
        bias = node.get(3)
        if bias is None:
            zeros = np.zeros((1, 2 * gates * size), numpy_dtype(node[0].dtype))
            bias, direction = constant(zeros), 0
        self.of_input, self.of_state = _part(bias, direction).split(0, [gates * size] * 2)
        lengths = node.get(4)
        self.lengths = None if lengths is None else lengths.cast("int32").expand(-1)
        self.limit = node.attribute("clip", 0.0)
        self.step = {"RNN": self._rnn, "GRU": self._gru, "LSTM": self._lstm}[node.operator]
        peepholes = node.get(7) if node.operator == "LSTM" else None
        self.peepholes = None
        if peepholes is not None:
            self.peepholes = _part(peepholes, direction).split(0, [size] * 3)

    def run(
        self, x: Tensor, order: range, states: list[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        steps, batch, features = x.shape
        whole = matmul(x.reshape([steps * batch, features]), self.weight) + self.of_input
        whole = whole.reshape([steps, batch, self.weight.shape[1]])
        outputs: dict[int, Tensor] = {}
        for i in order:
            after = self.step(_part(whole, i), states)
            outputs[i] = after[0]
            if self.lengths is not None:
                is_inside = self.lengths > i
                outputs[i] = where(is_inside, after[0], 0)
                after = [where(is_inside, *pair) for pair in zip(after, states, strict=True)]
            states = after
        return [outputs[i] for i in range(steps)], states

    def _clip(self, x: Tensor) -> Tensor:
        return minimum(maximum(x, -self.limit), self.limit) if self.limit else x

    def _cut(self, x: Tensor, count: int) -> list[Tensor]:
        return x.split(1, [self.size] * count)

    def _rnn(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        total = x + (matmul(states[0], self.recurrence) + self.of_state)
        return [self.functions[0](self._clip(total))]

    def _gru(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        (h,) = states
        f, g = self.functions
        update_x, reset_x, new_x = self._cut(x, 3)
        if self.node.attribute("linear_before_reset", 0):
            update_h, reset_h, new_h = self._cut(matmul(h, self.recurrence) + self.of_state, 3)
            reset = f(self._clip(reset_x + reset_h))
            new = g(self._clip(new_x + reset * new_h))
        else:
            gates, last = self.recurrence.split(1, [2 * self.size, self.size])
            bias, last_bias = self.of_state.split(0, [2 * self.size, self.size])
            update_h, reset_h = self._cut(matmul(h, gates) + bias, 2)
            reset = f(self._clip(reset_x + reset_h))
            new = g(self._clip(new_x + (matmul(reset * h, last) + last_bias)))
        update = f(self._clip(update_x + update_h))
        return [(1 - update) * new + update * h]

    def _lstm(self, x: Tensor, states: list[Tensor]) -> list[Tensor]:
        h, c = states
        f, g, last = self.functions
        i, o, forget, new = self._cut(x + (matmul(h, self.recurrence) + self.of_state), 4)
        if self.peepholes is not None:
            i, forget = i + self.peepholes[0] * c, forget + self.peepholes[2] * c
        i = f(self._clip(i))
        is_coupled = self.node.attribute("input_forget", 0)
        forget = 1 - i if is_coupled else f(self._clip(forget))
        c = forget * c + i * g(self._clip(new))
        if self.peepholes is not None:
            o = o + self.peepholes[1] * c
        return [f(self._clip(o)) * last(c), c]
