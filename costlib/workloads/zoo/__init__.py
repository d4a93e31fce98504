"""The zoo: networks by name, randomly initialised, nothing downloaded.

A name may carry a size: ``resnet_18@b4-r160`` has a batch of four and images of 160 pixels,
``bert_tiny@s64`` sequences of 64 tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from costlib.errors import UnknownNameError
from costlib.workloads.network import Network
from costlib.workloads.zoo import hugging_face, plain
from costlib.workloads.zoo.registry import NetworkSpec, Size

HELD_OUT = ("resnet_50", "mobilenet_v2", "resnext_50", "bert_base", "bert_tiny")
"""The evaluation networks: models are never trained on them, and never tuned towards them."""

_SPECS = {
    spec.name: spec
    for spec in sorted((*hugging_face.SPECS, *plain.SPECS), key=lambda spec: spec.name)
}


def list_networks() -> list[str]:
    """List the names in the zoo."""
    return list(_SPECS)


def network_spec(name: str) -> NetworkSpec:
    """Look up an entry by its name, with or without a size; ``UnknownNameError`` if none has it."""
    base = name.partition("@")[0]
    if base not in _SPECS:
        raise UnknownNameError("network", base, _SPECS)
    return _SPECS[base]


def build_network(name: str) -> Network:
    """Build a network of the zoo; see :func:`costlib.workloads.load_network`.

    It has the same weights in every process.
    """
    return build_of(network_spec(name), name)


def build_of(spec: NetworkSpec, name: str) -> Network:
    """Build a network of an entry, of the size that its name ends in, if it does."""
    from costlib.workloads.importers.torch_export import export_module

    size = spec.sized(name.partition("@")[2])
    return export_module(module_of(spec, size), spec.takes(size), name)


def module_of(spec: NetworkSpec, size: Size) -> Any:
    """Build the ``torch.nn.Module`` of an entry for a size."""
    import torch

    from costlib.workloads.zoo.modules import randomise

    rng = np.random.default_rng(0)
    example = [torch.from_numpy(given.random(rng)) for given in spec.takes(size)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return randomise(spec.build(size), *example)
