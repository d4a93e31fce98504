"""Collect the training dataset: the zoo without its held-out networks, and single operators.

    python tools/collect_training_data.py --out datasets/cpu --programs 32

Workloads of the held-out networks, and near duplicates of them, are left out whatever network
they come from. Called again it goes on; stop it at any time with Ctrl-C.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from costlib.data.card import write_card
from costlib.data.collect import CollectProgress, collect
from costlib.data.splits import WorkloadKey, overlapping
from costlib.workloads import HELD_OUT, Task, extract_tasks

NETWORKS = (
    "resnet_18",
    "mobilenet_v1",
    "squeezenet",
    "efficientnet_b0",
    "regnet_y_400mf",
    "bert_small",
    "bert_mini",
    "distilbert",
    "gpt2_mini",
    "t5_encoder",
    "vit_tiny",
    "dcgan",
    "textcnn",
    "r3d",
    "convnext_tiny",
    "vgg_11",
)

OPERATORS = (
    "matmul 512 512 512",
    "matmul 64 1024 256",
    "matmul 1024 64 512",
    "dense 64 256 256",
    "dense 128 192 192",
    "dense 196 384 384",
    "dense 32 1000 512",
    "dense 256 512 128 relu=1",
    "batch_matmul 4 64 64 32",
    "batch_matmul 8 196 196 64",
    "batch_matmul 3 256 64 256",
    "conv2d 1 32 28 28 64 3 pad=1",
    "conv2d 1 48 14 14 96 5 pad=2",
    "grouped_conv2d 1 64 28 28 64 3 8 pad=1",
    "dilated_conv2d 1 32 28 28 32 3 2 pad=2",
    "depthwise_conv2d 1 96 28 28 5 pad=2",
    "softmax 256 256",
    "softmax 2048 64",
    "softmax 128 1024",
    "layer_norm 64 256",
    "layer_norm 256 192",
    "layer_norm 512 512",
    "mean 512 1024",
    "sum 64 4096",
    "max 1024 256",
    "gelu 128 1024",
    "transpose 512 768",
)

MIN_FLOPS = 1e4
"""Tasks with less arithmetic, such as copies, have next to nothing to choose."""


def main() -> None:
    """Collect until every task has its programs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--programs", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    held_out = [_key(task) for network in HELD_OUT for task in extract_tasks(network)]
    tasks = [
        task
        for source in (*OPERATORS, *NETWORKS)
        for task in extract_tasks(source)
        if task.flops >= MIN_FLOPS
    ]
    banned = overlapping([_key(task) for task in tasks], held_out)
    wanted = [task for task in tasks if task.workload_id not in banned]
    print(f"{len({t.workload_id for t in wanted})} tasks; {len(banned)} left out as held out")
    started = time.monotonic()

    def show(progress: CollectProgress) -> None:
        elapsed_s = time.monotonic() - started
        print(
            f"{elapsed_s:7.0f} s  {progress.done}/{progress.total}  "
            f"{progress.failed} failed  {progress.task}",
            flush=True,
        )

    dataset = collect(
        wanted,
        arguments.out,
        programs_per_task=arguments.programs,
        seed=arguments.seed,
        on_progress=show,
    )
    write_card(dataset)


def _key(task: Task) -> WorkloadKey:
    return WorkloadKey.of(task.workload_id, task.name, [shape for _, shape in task.arguments])


if __name__ == "__main__":
    main()
