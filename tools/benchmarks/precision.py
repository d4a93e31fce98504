"""Products, convolutions and networks in several precisions, beside engines in the same.

    python -m tools.benchmarks.precision --runs runs/precision                # everything
    python -m tools.benchmarks.precision --runs runs/precision \\
        --networks bert_tiny "dense 128 768 768" --precisions int8 --minutes 60

Each case is tuned with the shipped bundle in a folder and a process of its own, and then timed in
turns with PyTorch (float32, and autocast to bfloat16), ONNX Runtime (float32 and int8) and OpenVINO
(all three), each in the same precision and with the same threads. An int8 case is the ONNX model
that ONNX Runtime's static quantisation makes of the network, which all of them are given. Decoders
of one token have weights of 8 and 4 bits beside float32, in ONNX Runtime and OpenVINO as well.
After each case ``tools/results/precision.json`` is written. What is there of this machine is not
measured again, and a run that was cut off goes on. The engines are an extra: ``costlib[engines]``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from importlib.metadata import version
from itertools import product
from pathlib import Path

from costlib.files import write_file
from costlib.hardware import Hardware
from tools.benchmarks.in_a_process import in_a_process
from tools.evidence.files import RESULTS
from tools.evidence.in_precisions import PRECISIONS, InPrecision, Precision, summarise_precisions

_PER_TASK = 16

NETWORKS = (
    "dense 128 768 768 bias=1 relu=1",
    "dense 128 3072 768 bias=1",
    "dense 512 1024 1024",
    "conv2d 1 64 56 56 64 3 pad=1 bias=1 relu=1",
    "conv2d 1 256 14 14 256 3 pad=1 bias=1 relu=1",
    "conv2d 1 256 56 56 64 1 bias=1 relu=1",
    "resnet_18",
    "bert_tiny",
    "resnet_50",
    "bert_base",
)
"""Layers that compute much, and networks; the last two are held out of all training."""

DECODERS = ("llama_mini@s1", "gpt2@s1")
"""Networks that wait for their weights, with one token at a time."""

_MULTIPLIED: tuple[Precision, ...] = ("float32", "bfloat16", "int8")
_STORED: tuple[Precision, ...] = ("float32", "int8-weights", "int4-weights")


def main() -> None:
    """Measure the cases that are missing; begin none after so many minutes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", metavar="NETWORK")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=PRECISIONS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--per-task", type=int, default=_PER_TASK, help="trials")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--runs", type=Path, required=True, help="where tuned networks are kept")
    parser.add_argument("--out", type=Path, default=RESULTS / "precision.json")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes
    rows = read_rows(given.out)
    hardware_id = Hardware.local(num_cores=given.threads).hardware_id
    cases = [*product(NETWORKS, _MULTIPLIED), *product(DECODERS, _STORED)]
    if given.networks:
        cases = list(product(given.networks, PRECISIONS))
    for name, precision in cases:
        if precision not in given.precisions:
            continue
        if (name, precision, given.threads, hardware_id) in {row.case for row in rows}:
            continue
        if time.monotonic() > end:
            return
        arguments = (name, precision, str(given.threads), str(given.per_task))
        try:
            found = in_a_process(
                "tools.benchmarks.precision_case", *arguments, str(given.runs.resolve())
            )
        except subprocess.CalledProcessError as error:  # Its last words are on stderr.
            print(name, precision, f"ended with {error.returncode}", flush=True)
            continue
        rows.append(InPrecision.model_validate(found))
        packages = ("torch", "onnxruntime", "openvino")
        versions = {package: version(package) for package in packages}
        content = {"versions": versions, **summarise_precisions(rows)}
        write_file(given.out, (json.dumps(content, indent=1) + "\n").encode())
        print(_line(rows[-1]), flush=True)


def read_rows(file: Path) -> list[InPrecision]:
    """Return what a result file holds; nothing if it is not there."""
    content = json.loads(file.read_text()) if file.exists() else {"cases": []}
    return [InPrecision.model_validate(row) for row in content["cases"]]


def _line(row: InPrecision) -> str:
    found = [f"{title} {1e3 * secs:.3f} ms" for title, secs in row.seconds.items()]
    problems = [f"{title}: {problem}" for title, problem in row.problems.items()]
    return f"{row.name} in {row.precision}: " + "; ".join([*found, *problems])


if __name__ == "__main__":
    main()
