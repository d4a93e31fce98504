"""Variants of a network by what is appended to its name: layouts, Winograd, types, few bits."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from typing import get_args

from costlib.errors import InputError
from costlib.workloads.half_precision import SHORT, HalfFormat
from costlib.workloads.layout import (
    CHANNELS_LAST,
    converted,
    has_channels_first,
    in_layout,
)
from costlib.workloads.network import Network
from costlib.workloads.small_weights import WeightFormat
from costlib.workloads.winograd import WINOGRAD

_FORMATS: tuple[WeightFormat, ...] = get_args(WeightFormat)
_OTHERS = "|".join([*_FORMATS, *SHORT.values()])
SUFFIX = re.compile(rf"\+(nhwc|nchw[1-9]\d*c|{WINOGRAD}|{_OTHERS})$")
"""What may be appended to a network's name."""


def varied(network: Network, suffix: str) -> Network:
    """Return the variant of a network that a suffix means; its name says so.

    Raises
    ------
    UnsupportedModelError
        This network has no such variant.
    """
    for weights in _FORMATS:
        if suffix == weights:
            return with_weights(network, weights)
    for dtype, short in SHORT.items():
        if suffix == short:
            return with_dtype(network, dtype)
    return in_layout(network, suffix)


def with_weights(network: Network, weights: WeightFormat | None) -> Network:
    """Return a network that keeps the weights of its products in so many bits.

    Raises
    ------
    InputError
        It multiplies in 16 bits; weights of few bits are multiplied in float32.
    """
    if weights in (None, network.weights):
        return network
    if network.dtype is not None:
        raise InputError(
            f"{network.name}: products with weights in {weights} are in float32; "
            f"choose one of {weights} and {network.dtype}"
        )
    return replace(network, name=f"{network.name}+{weights}", weights=weights)


def with_dtype(network: Network, dtype: HalfFormat | None) -> Network:
    """Return a network that multiplies in 16 bits; its convolutions have their channels last.

    Raises
    ------
    InputError
        Its weights are kept in few bits, which are multiplied in float32.
    """
    if dtype in (None, network.dtype):
        return network
    if network.weights is not None:
        raise InputError(
            f"{network.name}: products with weights in {network.weights} are in float32; "
            f"choose one of {network.weights} and {dtype}"
        )
    mod = network.mod
    if has_channels_first(mod):
        with contextlib.suppress(Exception):  # Whatever TVM has against it, it runs as it is.
            mod = converted(mod, CHANNELS_LAST, phased=False)
    return replace(network, name=f"{network.name}+{SHORT[dtype]}", mod=mod, dtype=dtype)
