"""One case of :mod:`tools.benchmarks.precision`, in a process of its own.

python -m tools.benchmarks.precision_case NETWORK PRECISION THREADS TRIALS_PER_TASK RUNS
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

from costlib.hardware import find_hardware
from costlib.tuning.config import TuneConfig
from costlib.tuning.session import RUN
from costlib.tuning.trials import TRIALS
from costlib.tuning.tune import tune
from costlib.workloads import Network, TorchReference, extract_tasks, load_network
from costlib.workloads.layout_choice import Layouts
from costlib.workloads.small_weights import WeightFormat
from costlib.workloads.variants import with_dtype, with_weights
from tools.benchmarks.outside import load_any
from tools.evidence.in_precisions import InPrecision, Precision

_CALIBRATION = 4
"""Random inputs by which the ranges of activations are found."""

_AGAINST: dict[Precision, tuple[str, ...]] = {
    "float32": ("onnxruntime", "openvino"),
    "bfloat16": ("torch-bf16", "openvino-bf16"),
    "int8": ("onnxruntime", "openvino"),
    "int8-weights": ("onnxruntime-int8-weights", "openvino-int8-weights"),
    "int4-weights": ("onnxruntime-int4-weights", "openvino-int4-weights"),
}

_WEIGHTS: dict[Precision, WeightFormat] = {"int8-weights": "int8", "int4-weights": "int4"}


def measured(
    name: str, precision: Precision, threads: int, per_task: int, runs: Path
) -> InPrecision:
    """Tune a network in a precision, or go on with that, and compare it with the engines."""
    hardware = find_hardware("cpu", num_cores=threads)
    label = re.sub(r"[^\w.@=-]+", "_", name)
    network = load_any(name)
    if precision == "bfloat16":
        network = with_dtype(network, "bfloat16")
    network = with_weights(network, _WEIGHTS.get(precision))
    if precision == "int8":
        network = load_network(_quantised(network, runs / "models", label))
    folder = runs / f"{label}-{precision}-t{threads}"
    layouts: Layouts = "all" if precision == "float32" else "given"
    result = tune(
        network,
        out=folder,
        trials=per_task * len(extract_tasks(network, hardware)),
        hardware=hardware,
        resume=any((folder / file).exists() for file in (RUN, TRIALS)),
        config=TuneConfig(layouts=layouts, against=_AGAINST[precision]),
    )
    return InPrecision.of_run(name, precision, threads, result)


def _quantised(network: Network, folder: Path, label: str) -> Path:
    """Write a network as an ONNX model of 8-bit integers, by ONNX Runtime's own means."""
    file = folder / f"{label}-int8.onnx"
    if file.exists():
        return file
    import onnx
    import torch
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    folder.mkdir(parents=True, exist_ok=True)
    assert isinstance(network.reference, TorchReference)
    plain, prepared = folder / f"{label}.onnx", folder / f"{label}-prepared.onnx"
    written = torch.onnx.export(network.reference.program, dynamo=True, verbose=False)
    assert written is not None
    written.save(plain)
    quant_pre_process(plain, prepared, skip_symbolic_shape=True)
    names = [given.name for given in onnx.load(prepared).graph.input]

    class Random(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.seeds = iter(range(_CALIBRATION))

        def get_next(self) -> dict[str, np.ndarray] | None:
            seed = next(self.seeds, None)
            if seed is None:
                return None
            return dict(zip(names, network.random_inputs(seed), strict=True))

    settings: dict[str, Any] = {"quant_format": QuantFormat.QDQ, "per_channel": True}
    unfinished = folder / f"{label}-unfinished.onnx"
    quantize_static(prepared, unfinished, Random(), **settings)
    unfinished.rename(file)
    return file


if __name__ == "__main__":
    _, name, kind, threads, per_task, runs = sys.argv
    precision: Any = kind
    found = measured(name, precision, int(threads), int(per_task), Path(runs))
    print(found.model_dump_json())
