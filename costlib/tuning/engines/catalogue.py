"""The engines that there are: what they are called, what they need and how they load a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from costlib.errors import InputError, UnknownNameError
from costlib.tuning.engines.handover import missing_package
from costlib.tuning.engines.loading import (
    Loader,
    load_in_onnx_runtime,
    load_in_openvino,
    load_in_pytorch,
)

Form = Literal["program", "onnx"]
"""What an engine is given: a program of ``torch.export``, or an ONNX model."""


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
    """

    name: str
    title: str
    takes: Form
    load: Loader
    package: str = "torch"
    environment: Mapping[str, str] = field(default_factory=dict)
    on_gpu: bool = False

    def missing(self) -> str | None:
        """Say what has to be installed first, if anything."""
        return missing_package(self.package)


PYTORCH = Engine(
    "pytorch", "PyTorch", "program", partial(load_in_pytorch, compiled=None), on_gpu=True
)
"""What a network came from, as it is: always beside it."""

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
