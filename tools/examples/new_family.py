"""A network that costlib has never heard of: a small MLP-Mixer, measured, learnt from and tuned.

python tools/examples/new_family.py
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import costlib
from costlib.tuning.result import TuneResult
from costlib.workloads import InputSpec, load_network


class Mixer(nn.Module):
    """Blocks that mix patches, then channels (Tolstikhin et al., NeurIPS'21)."""

    def __init__(self, blocks: int = 2, patches: int = 64, width: int = 96) -> None:
        super().__init__()
        self.embed = nn.Conv2d(3, width, 8, 8)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * blocks))
        self.across = nn.ModuleList(self._mlp(patches, 2 * patches) for _ in range(blocks))
        self.within = nn.ModuleList(self._mlp(width, 4 * width) for _ in range(blocks))

    @staticmethod
    def _mlp(width: int, hidden: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Turn an image into one vector."""
        x = self.embed(image).flatten(2).transpose(1, 2)
        for i, (across, within) in enumerate(zip(self.across, self.within, strict=True)):
            x = x + across(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + within(self.norms[2 * i + 1](x))
        return x.mean(1)


def main(trials: int = 128, programs: int = 16, out: str | Path = "runs/mixer") -> TuneResult:
    """Measure some programs of its tasks, train on them, tune with both bundles' knowledge."""
    torch.manual_seed(0)
    network = load_network(Mixer().eval(), (InputSpec("image", "float32", (1, 3, 64, 64)),))
    tasks = costlib.extract_tasks(network)
    print(
        *(f"{task.weight} x {task.name}, {task.flops / 1e6:.1f} MFLOP" for task in tasks), sep="\n"
    )
    data = costlib.collect(tasks, Path(out) / "data", programs_per_task=programs)
    bundle = costlib.train(data, Path(out) / "bundle", held_out_share=0.3)
    print("top-1 on its own unseen tasks:", bundle.manifest.metrics["top1"])
    return costlib.tune(network, out=Path(out) / "tuned", trials=trials)


if __name__ == "__main__":
    print(main().networks)
