"""A network in the layouts that it is tuned in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from costlib.errors import UnsupportedModelError
from costlib.hardware import Hardware
from costlib.workloads.inference import prepare_network
from costlib.workloads.layout import (
    CHANNELS_LAST,
    has_channels_first_alone,
    in_layout,
    other_layouts,
)
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.network import Network
from costlib.workloads.winograd import WINOGRAD

Version = tuple[Network, Any]
"""A network in some layout, and its module, prepared."""

_log = logging.getLogger(__name__)


def in_layouts(given: Network, hardware: Hardware, layouts: Layouts) -> Iterator[Version]:
    """Yield a network in the layouts that are wanted and possible; one at least.

    Parameters
    ----------
    given
        The network as it was given.
    hardware
        What to prepare it for.
    layouts
        ``"channels-last"``: a network in float32 has its convolutions in NHWC on a CPU, first
        without and then with Winograd's algorithm where that is less work; single operators, and
        networks with a layout in their name, are left as they are. ``"given"``: as it was given.
        ``"all"``: first as it was given, then in NHWC and in blocks of channels, each without and
        with Winograd's algorithm.
    """
    if layouts == "channels-last" and _suits_channels_last(given, hardware):
        last = _converted(given, hardware, CHANNELS_LAST)
        if last is not None:
            yield last
            yield from _by_winograd(last[0], hardware)
            return
    yield given, prepare_network(given, hardware)
    for layout in other_layouts(given.mod, hardware) if layouts == "all" else ():
        if (other := _converted(given, hardware, layout)) is None:
            continue
        yield other
        yield from _by_winograd(other[0], hardware)


def _suits_channels_last(network: Network, hardware: Hardware) -> bool:
    """Whether a network has convolutions for a CPU, in a layout that nobody chose.

    In fewer bits they get channels last when they are prepared.
    """
    return (
        hardware.kind == "cpu"
        and not network.is_operator
        and network.precision == "float32"
        and has_channels_first_alone(network.mod)
    )


def _by_winograd(network: Network, hardware: Hardware) -> Iterator[Version]:
    """Yield it with Winograd's algorithm; nothing if that is less work for no convolution."""
    try:
        fewer = in_layout(network, WINOGRAD)
        prepared = prepare_network(fewer, hardware)
    except UnsupportedModelError:
        return
    yield fewer, prepared


def _converted(given: Network, hardware: Hardware, layout: str) -> Version | None:
    try:
        other = in_layout(given, layout)
        return other, prepare_network(other, hardware)
    except Exception:  # Whatever TVM has against a layout, there are others.
        _log.warning("%s is not tried in %s: TVM cannot convert it", given.name, layout)
        return None
