"""The engines that there are: what they are called, what they need and how they load a network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from costlib.errors import InputError, UnknownNameError
from costlib.tuning.engines.handover import WEIGHT_BITS, Form, missing_package
from costlib.tuning.engines.loading import (
    Loader,
    load_in_onnx_runtime,
    load_in_openvino,
    load_in_pytorch,
)


@dataclass(frozen=True)
class Engine:
    """Something that runs networks.

    Attributes
    ----------
    name
        As users write it.
    title
        As tables show it.
    takes
        What it is given.
    load
        Loads that; called in the engine's process.
    package
        What has to be installed, as it is imported and as pip calls it.
    environment
        Variables of its process.
    on_gpu
        Whether it runs on a GPU, too.
    rounds_weights
        Whether it keeps the weights of products in fewer bits than the network it is given.
    """

    name: str
    title: str
    takes: Form
    load: Loader
    package: str = "torch"
    environment: Mapping[str, str] = field(default_factory=dict)
    on_gpu: bool = False
    rounds_weights: bool = False

    def missing(self) -> str | None:
        """Say what has to be installed first, if anything."""
        return missing_package(self.package)


PYTORCH = Engine(
    "pytorch", "PyTorch", "program", partial(load_in_pytorch, compiled=None), on_gpu=True
)
"""What a network came from, as it is: always beside it."""


def _with_small_weights(name: str, title: str, load: Callable[..., Any]) -> list[Engine]:
    """Return an engine of ONNX models, given those whose weights are rounded."""
    return [
        Engine(
            f"{name}-{form.removeprefix('onnx-')}",
            f"{title}, {bits}-bit weights",
            form,
            partial(load, form=form),
            name,
            rounds_weights=True,
        )
        for form, bits in WEIGHT_BITS.items()
    ]


ENGINES = {
    engine.name: engine
    for engine in (
        Engine(
            "torch.compile",
            "torch.compile",
            "program",
            partial(load_in_pytorch, compiled=""),
            on_gpu=True,
        ),
        Engine(
            "torch.compile-max-autotune",
            "torch.compile, max-autotune",
            "program",
            partial(load_in_pytorch, compiled="max-autotune"),
            # Constant weights: without them it does not try its own matrix products.
            environment={"TORCHINDUCTOR_FREEZING": "1"},
            on_gpu=True,
        ),
        Engine("onnxruntime", "ONNX Runtime", "onnx", load_in_onnx_runtime, "onnxruntime"),
        Engine("openvino", "OpenVINO", "onnx", load_in_openvino, "openvino"),
        Engine(
            "torch-bf16",
            "PyTorch, bfloat16",
            "program",
            partial(load_in_pytorch, compiled=None, in_bfloat16=True),
            on_gpu=True,
        ),
        Engine(
            "openvino-bf16",
            "OpenVINO, bfloat16",
            "onnx",
            partial(load_in_openvino, precision="bf16"),
            "openvino",
        ),
        *_with_small_weights("onnxruntime", "ONNX Runtime", load_in_onnx_runtime),
        *_with_small_weights("openvino", "OpenVINO", load_in_openvino),
    )
}
"""Those that a network may be run against, by their names."""


def check_engines(names: Iterable[str], kind: str = "cpu") -> None:
    """Check that all of these are engines, and run on hardware of a kind.

    Raises
    ------
    UnknownNameError
        One is none.
    InputError
        One runs on the CPU alone.
    """
    for name in names:
        if name not in ENGINES:
            raise UnknownNameError("engine", name, ENGINES)
        if kind != "cpu" and not ENGINES[name].on_gpu:
            raise InputError(f"{ENGINES[name].title} runs on the CPU, not on {kind}; leave it out")
