"""Single operators by name and shape: ``"conv2d 1 64 56 56 128 3 stride=2 pad=1"``.

A spec is a name, the operator's extents in order, then its options, in order or as
``key=value``. It becomes a network of one PyTorch layer and goes the way of any other, so
that the same layer found in a network is the same task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from costlib.errors import InputError, UnknownNameError, quoted
from costlib.workloads.network import InputSpec, Network


@dataclass(frozen=True)
class OperatorSpec:
    """One operator that a spec can name.

    Attributes
    ----------
    name
        What users call it.
    extents
        The names of its extents, in order.
    inputs
        Each input's shape, as the names of extents; whatever else it needs is a weight.
    options
        Its options and their defaults, in order.
    """

    name: str
    extents: tuple[str, ...]
    inputs: tuple[str, ...]
    options: Mapping[str, int] = field(default_factory=dict)

    @property
    def usage(self) -> str:
        """How to write it, e.g. ``dense M N K [bias=0] [relu=0]``."""
        options = [f"[{key}={default}]" for key, default in self.options.items()]
        return " ".join([self.name, *self.extents, *options])

    def shapes(self, arguments: Mapping[str, int]) -> list[tuple[int, ...]]:
        """Return the shape of each input."""
        return [tuple(arguments[name] for name in names.split()) for names in self.inputs]

    def parse(self, words: list[str]) -> dict[str, int]:
        """Read the words after the name.

        Raises
        ------
        InputError
            The wrong number of extents, an unknown option, or something that is no number.
        """
        names = (*self.extents, *self.options)
        positional = [word for word in words if "=" not in word]
        given = dict(zip(names, positional, strict=False))
        given |= dict(word.split("=", 1) for word in words if "=" in word)
        unambiguous = len(given) == len(words) and given.keys() <= set(names)
        if not unambiguous or not given.keys() >= set(self.extents):
            raise InputError(f"'{' '.join([self.name, *words])}' does not match: {self.usage}")
        for key, value in given.items():
            least = 0 if self.options.get(key) == 0 else 1
            if not value.isdecimal() or int(value) < least:
                raise InputError(f"{key} is '{value}', not a number from {least} on: {self.usage}")
        return {**self.options, **{key: int(value) for key, value in given.items()}}


_EPILOGUE = {"bias": 0, "relu": 0}
_WINDOW = {"stride": 1, "pad": 0}
_CONV = {**_WINDOW, "groups": 1, "dilation": 1, **_EPILOGUE}
_INT8 = {"int8": 0}
_IMAGE = ("N", "C", "H", "W")
_IMAGES = ("N C H W",)
_MATRIX = ("M", "N")


def _row(name: str, extents: tuple[str, ...], *inputs: str, **options: int) -> OperatorSpec:
    return OperatorSpec(name, extents, inputs, options)


OPERATORS = {
    spec.name: spec
    for spec in (
        _row("avg_pool2d", (*_IMAGE, "K"), *_IMAGES, **_WINDOW),
        _row("batch_matmul", ("B", "M", "N", "K"), "B M K", "B K N"),
        _row("conv1d", ("N", "C", "W", "O", "K"), "N C W", **_CONV),
        _row("conv1d_transpose", ("N", "C", "W", "O", "K"), "N C W", **_WINDOW, **_EPILOGUE),
        _row("conv2d", (*_IMAGE, "O", "K"), *_IMAGES, **_CONV, **_INT8),
        _row("conv2d_bias_relu", (*_IMAGE, "O", "K"), *_IMAGES, **_WINDOW),
        _row("conv2d_transpose", (*_IMAGE, "O", "K"), *_IMAGES, **_WINDOW, **_EPILOGUE),
        _row("conv3d", ("N", "C", "D", "H", "W", "O", "K"), "N C D H W", **_CONV),
        _row("dense", ("M", "N", "K"), "M K", **_EPILOGUE, **_INT8),
        _row("depthwise_conv2d", (*_IMAGE, "K"), *_IMAGES, **_WINDOW, **_EPILOGUE),
        _row("dilated_conv2d", (*_IMAGE, "O", "K", "dilation"), *_IMAGES, **_WINDOW, **_EPILOGUE),
        _row("gelu", _MATRIX, "M N"),
        _row("grouped_conv2d", (*_IMAGE, "O", "K", "groups"), *_IMAGES, **_WINDOW, **_EPILOGUE),
        _row("layer_norm", _MATRIX, "M N"),
        _row("matmul", ("M", "N", "K"), "M K", "K N"),
        _row("max", _MATRIX, "M N"),
        _row("max_pool2d", (*_IMAGE, "K"), *_IMAGES, **_WINDOW),
        _row("mean", _MATRIX, "M N"),
        _row("softmax", _MATRIX, "M N"),
        _row("sum", _MATRIX, "M N"),
        _row("transpose", _MATRIX, "M N"),
    )
}
"""``matmul M N K`` is (M, K) times (K, N), both of them inputs; the second operand of
``dense`` is a weight. Reductions, softmax and layer norm run over the last extent. With ``int8=1``
input and weight are quantised to 8 bits and the sums are those of integers."""


def list_operators() -> list[str]:
    """List the usage of every operator, e.g. ``"batch_matmul B M N K"``."""
    return [spec.usage for spec in OPERATORS.values()]


def build_operator(spec: str) -> Network:
    """Build a network of a single operator on float32; see :func:`costlib.workloads.load_network`.

    A spec is name, extents and options, separated by blanks, as :func:`list_operators` says.
    """
    import torch

    from costlib.workloads.importers.torch_export import export_module
    from costlib.workloads.operator_layers import build_layer
    from costlib.workloads.quantised_layers import quantised

    name, *words = spec.split() or [""]
    if name not in OPERATORS:
        raise UnknownNameError("operator", name, OPERATORS)
    operator = OPERATORS[name]
    arguments = operator.parse(words)
    inputs = [
        InputSpec(f"x{i}", "float32", shape) for i, shape in enumerate(operator.shapes(arguments))
    ]
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            layer = build_layer(name, arguments).eval()
            if arguments.get("int8"):
                layer = quantised(torch.nn.Sequential(layer), torch.randn(inputs[0].shape))
    except (RuntimeError, ValueError) as error:
        raise InputError(f"'{spec}' is not possible: {quoted(error, 0)}") from None
    network = export_module(layer, inputs, " ".join([name, *words]))
    return replace(network, is_operator=True)
