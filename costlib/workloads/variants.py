"""Variants of a network by what is appended to its name: layouts, Winograd, small weights."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

from costlib.workloads.layout import decomposed, in_layout
from costlib.workloads.network import Network
from costlib.workloads.small_weights import WeightFormat, with_rounded_weights
from costlib.workloads.winograd import WINOGRAD

_FORMATS: tuple[WeightFormat, ...] = get_args(WeightFormat)
SUFFIX = re.compile(rf"\+(nhwc|nchw[1-9]\d*c|{WINOGRAD}|{'|'.join(_FORMATS)})$")
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
    return in_layout(network, suffix)


def with_weights(network: Network, weights: WeightFormat | None) -> Network:
    """Return a network that keeps the weights of its products in so many bits."""
    if weights in (None, network.weights):
        return network
    return replace(network, name=f"{network.name}+{weights}", weights=weights)


def in_float(network: Network) -> Network:
    """Return a network as it is in float32, its weights rounded to what they are kept in."""
    if network.weights is None:
        return network
    mod = with_rounded_weights(decomposed(network.mod), network.weights)
    return replace(network, mod=mod, weights=None)
