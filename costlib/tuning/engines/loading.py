"""How each engine loads a network, at float32 unless told otherwise, and in a setting.

Called in the engine's own process. What is loaded is called once, and its outputs are kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from costlib.frozen import FrozenStrict
from costlib.tuning.engines.handover import FILES, SIGNATURE, Form, load_program


class Setting(FrozenStrict):
    """What an engine runs on.

    Attributes
    ----------
    threads
        How many it may use.
    device
        As PyTorch calls it: ``"cpu"`` or ``"cuda"``.
    allow_tf32
        Whether float32 may be multiplied in TF32 there, as ours is then, too. PyTorch allows it in
        convolutions, unless it is told otherwise.
    """

    threads: int
    device: str = "cpu"
    allow_tf32: bool = False


Call = Callable[[], Any]
Loader = Callable[[Path, Sequence[np.ndarray], Setting], tuple[Call, list[np.ndarray]]]
"""Takes the folder, the inputs and the setting; returns a call and the outputs of the first one.

A call has ended when it returns, on a GPU as well.
"""

PASSIVE = {"OMP_WAIT_POLICY": "passive"}
"""In the environment of an engine whose threads are to sleep while they wait for each other."""


def load_in_pytorch(
    folder: Path,
    inputs: Sequence[np.ndarray],
    setting: Setting,
    compiled: str | None,
    *,
    in_bfloat16: bool = False,
) -> tuple[Call, list[np.ndarray]]:
    """Load a program into PyTorch, compiled in this mode unless it is ``None``.

    In bfloat16 it is called under autocast.
    """
    import torch
    from torch.utils import _pytree as pytree

    from costlib.workloads.signature import Signature
    from costlib.workloads.torch_arrays import to_numpy
    from costlib.workloads.torch_reference import TorchReference

    torch.set_num_threads(setting.threads)
    torch.set_float32_matmul_precision("high" if setting.allow_tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = setting.allow_tf32
    torch.backends.cudnn.benchmark = True
    file = folder / SIGNATURE
    signature = Signature.model_validate_json(file.read_text()) if file.exists() else None
    program = load_program(folder)
    if setting.device != "cpu":
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, setting.device)
    module = program.module()
    if compiled is not None:
        module = torch.compile(module, mode=compiled or None)
    plain = TorchReference(module, signature).timed(inputs, setting.device)

    def in_half() -> Any:
        with torch.autocast(setting.device, torch.bfloat16):
            return plain()

    call = _awaited(in_half if in_bfloat16 else plain, setting.device)
    outputs = [one for one in pytree.tree_leaves(call()) if isinstance(one, torch.Tensor)]
    if in_bfloat16:  # Which autocast leaves as a product returns it.
        outputs = [one.float() if one.dtype == torch.bfloat16 else one for one in outputs]
    return call, [to_numpy(one.cpu()).copy() for one in outputs]


def _awaited(call: Call, device: str) -> Call:
    """Have a call end when the device is done."""
    if device == "cpu":
        return call
    import torch

    module = torch.get_device_module(device)

    def awaited() -> Any:
        outputs = call()
        module.synchronize()
        return outputs

    return awaited


def load_in_onnx_runtime(
    folder: Path, inputs: Sequence[np.ndarray], setting: Setting, form: Form = "onnx"
) -> tuple[Call, list[np.ndarray]]:
    """Load an ONNX model into ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = setting.threads
    options.log_severity_level = 4
    if PASSIVE.items() <= os.environ.items():
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(
        folder / FILES[form], options, providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in session.get_inputs()]
    feeds = dict(zip(names, inputs, strict=True))

    def call() -> Any:
        return session.run(None, feeds)

    return call, [np.asarray(output) for output in call()]


def load_in_openvino(
    folder: Path,
    inputs: Sequence[np.ndarray],
    setting: Setting,
    form: Form = "onnx",
    precision: str = "f32",
) -> tuple[Call, list[np.ndarray]]:
    """Load an ONNX model into OpenVINO, which computes in this type."""
    import openvino

    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": setting.threads,
        "INFERENCE_PRECISION_HINT": precision,
    }
    model = openvino.Core().compile_model(folder / FILES[form], "CPU", settings)
    request = model.create_infer_request()
    request.infer(dict(zip(model.inputs, inputs, strict=True)))
    outputs = [request.get_tensor(output).data.copy() for output in model.outputs]
    return request.infer, outputs
