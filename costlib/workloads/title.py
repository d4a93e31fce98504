"""What people call a task: its operator, its shapes, and a short id that tells equal ones apart."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_ID_LENGTH = 6

_WINDOWED = re.compile(r"(conv|avg_pool|max_pool)(\d)d")
_HEAVY = re.compile(
    r"(conv\dd_transpose|conv\dd|avg_pool\dd|max_pool\dd|batch_matmul|matmul|layer_norm|group_norm"
    r"|instance_norm|rms_norm|log_softmax|softmax|winograd_input|winograd_output"
    r"|layout_transform|attention)(?=_|\d*$)"
)
"""Operators that a fused one is named after, wherever they stand in its name."""

_SMALL_WEIGHTS = "int"
"""What a product with weights in 8 or 4 bits has in its name."""

_PACKED, _BLOCKS = "packed", ((16, 4), (16, 2), (4, 4))
"""What a product with packed weights has in its name, and the innermost extents of those."""

_LAYOUTS = {2: "NHWC", 3: "NDHWC"}
"""Those with channels last that are named, by the dimensions of images."""

_MOST_LANES = 16
"""Weights of convolutions with channels last are filled up with fewer outputs than that."""

_STEPS = {
    "subtract_divide_multiply_add": "batch-norm",
    **{
        f"{scaled}_round{moved}_maximum_minimum_cast_cast": "quantise"
        for scaled in ("divide", "multiply")
        for moved in ("_add", "")
    },
    **{f"cast_{moved}_cast_multiply": "dequantise" for moved in ("add", "subtract")},
}
"""Operators that people have one name for."""

Argument = tuple[str, Sequence[int]]
"""Dtype and shape."""


def short_id(workload_id: str) -> str:
    """Return the part of a workload's id that people are shown."""
    return workload_id[:_ID_LENGTH]


def task_title(name: str, arguments: Sequence[Argument], workload_id: str) -> str:
    """Return e.g. ``"depthwise_conv2d 1×32×56×56 → 1×32×28×28, 3×3 + add + relu · 1f2e3d"``.

    Parameters
    ----------
    name
        A task's, see :class:`costlib.workloads.task.Task`.
    arguments
        Dtype and shape of each argument, results last; none if they are not known.
    workload_id
        Its id.
    """
    operator, others, shapes = _described(name, arguments)
    text = f"{_kind(operator, shapes)} {_extents(operator, shapes)}".strip()
    if arguments and arguments[0][0] != "float32":
        text += f" {arguments[0][0]}"
    if _SMALL_WEIGHTS in others and len(shapes) > 1:
        bits = 8 if shapes[0][-1:] == shapes[1][:1] else 4  # Two rows of 4 bits are one.
        others[others.index(_SMALL_WEIGHTS)] = f"int{bits} weights"
    return f"{' + '.join([text, *others])} · {short_id(workload_id)}"


def fused_title(name: str, arguments: Sequence[Argument]) -> str:
    """Return what tasks of several shapes have in common, e.g. ``"dense + add + relu"``.

    Parameters are those of :func:`task_title`.
    """
    return " + ".join([operator_kind(name, arguments), *_described(name, arguments)[1]])


def operator_kind(name: str, arguments: Sequence[Argument]) -> str:
    """Return what people call a task's operator, e.g. ``"depthwise_conv2d"``."""
    operator, _, shapes = _described(name, arguments)
    return _kind(operator, shapes)


def _described(
    name: str, arguments: Sequence[Argument]
) -> tuple[str, list[str], list[tuple[int, ...]]]:
    """The operator, the others, and all shapes; that of packed weights as it was before."""
    operator, others = _parts(name)
    shapes = [tuple(shape) for _, shape in arguments]
    if _PACKED in others:
        others.remove(_PACKED)
        place = next((i for i, shape in enumerate(shapes) if _is_packed(operator, shape)), None)
        if place is not None:
            blocks, *window, groups, lanes, group = shapes[place]
            depth = shapes[0][-1] if operator != "matmul" else groups * group
            whole = (blocks * lanes, *window, depth) if window else (depth, blocks * lanes)
            return operator, others, [shapes[0], whole, *shapes[1:place], *shapes[place + 1 :]]
    return operator, others, shapes


def _is_packed(operator: str, shape: Sequence[int]) -> bool:
    return len(shape) == {"matmul": 4}.get(operator, 6) and tuple(shape[-2:]) in _BLOCKS


def _parts(name: str) -> tuple[str, list[str]]:
    """The operator that a fused one is named after, and the others, in order."""
    plain = name.removeprefix("fused_").replace("tir_", "").replace("te_layout", "layout")
    heavy = _HEAVY.search(plain)
    if heavy is None or (heavy.start() and plain[heavy.start() - 1] != "_"):
        operator, _, rest = plain.partition("_")
        return operator, _words(rest)
    others = _words(plain[: heavy.start()]) + _words(plain[heavy.end() :])
    return heavy.group(1), others


def _words(text: str) -> list[str]:
    joined = text
    for operators, name in _STEPS.items():
        joined = joined.replace(operators, name)
    return [word.replace("-", "_") for word in joined.split("_") if word and not word.isdecimal()]


def _kind(operator: str, shapes: Sequence[tuple[int, ...]]) -> str:
    if operator == "matmul" and len(shapes) >= 3:
        left, right = shapes[:2]
        if len(right) > 2 and math.prod(right[:-2]) > 1:
            return "batch_matmul"
        is_biased = len(shapes) > 3 and len(shapes[2]) == 1
        return "dense" if len(right) == 2 and (len(left) > 2 or is_biased) else "matmul"
    groups, channels = _groups(operator, shapes)
    if groups > 1:
        return f"{'depthwise' if groups == channels else 'grouped'}_{operator}"
    return operator


def _groups(operator: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, int]:
    """Into how many groups a convolution divides its channels, and those; ``(1, 1)`` of others."""
    found = _WINDOWED.fullmatch(operator)
    if found is None or found.group(1) != "conv" or len(shapes) < 3:
        return 1, 1
    spatial = int(found.group(2))
    data, weight = shapes[:2]
    if len(data) == spatial + 3 and len(weight) == spatial + 4:  # Channels in blocks.
        channels, of_group = data[1] * data[-1], weight[1] * weight[-2]
    elif len(data) != spatial + 2 or len(weight) != spatial + 2:
        return 1, 1
    elif _channels_last(shapes):
        channels, of_group = data[-1], weight[-1]
    else:
        channels, of_group = data[1], weight[1]
    return (max(1, channels // of_group), channels) if channels % of_group == 0 else (1, 1)


def _channels_last(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether a convolution's data and weight have their channels last."""
    (data, weight), result = shapes[:2], shapes[-1]
    first = result[1] == weight[0] and data[1] % weight[1] == 0
    filled_up = weight[0] - result[-1]
    if not 0 <= filled_up < _MOST_LANES or data[-1] % weight[-1]:
        return False
    return not first or (not filled_up and math.prod(weight[1:-1]) < math.prod(weight[2:]))


def _extents(operator: str, shapes: Sequence[tuple[int, ...]]) -> str:
    if not shapes:
        return ""
    given, result = shapes[0], shapes[-1]
    text = _times(given) if given == result else f"{_times(given)} → {_times(result)}"
    found = _WINDOWED.fullmatch(operator)
    if found is None or found.group(1) != "conv" or len(shapes) < 3:
        return text
    spatial = int(found.group(2))
    if len(shapes[1]) == spatial + 2 and _channels_last(shapes):
        layout = _LAYOUTS.get(spatial)
        return f"{text}, {_times(shapes[1][1:-1])} {layout}" if layout else text
    return f"{text}, {_times(shapes[1][2 : 2 + spatial])}"


def _times(extents: Sequence[int]) -> str:
    return "×".join(map(str, extents)) or "scalar"
