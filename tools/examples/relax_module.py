"""A Relax module, tuned and deployed: what is left is a library that needs TVM's runtime alone.

python tools/examples/relax_module.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tvm.relax.frontend import nn

import costlib
from costlib.tvm_compat import relax, tvm


class FeedForward(nn.Module):
    """Two layers, as in a transformer."""

    def __init__(self, width: int = 128, hidden: int = 512) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        """Expand, activate, contract."""
        return self.down(nn.op.silu(self.up(x)))


def module() -> tuple[Any, list[np.ndarray]]:
    """Return the network with its weights bound, and an input."""
    rng = np.random.default_rng(0)
    exported, parameters = FeedForward().export_tvm(
        {"forward": {"x": nn.spec.Tensor((32, 128), "float32")}}
    )
    weights = {
        name: rng.normal(0, 0.05, [int(n) for n in parameter.shape]).astype("float32")
        for name, parameter in parameters
    }
    bound = relax.transform.BindParams("forward", weights)(exported)
    main = bound["forward"].with_attr("global_symbol", "main")
    return tvm.IRModule({"main": main}), [rng.normal(size=(32, 128)).astype("float32")]


def deployed(library: Path, inputs: list[np.ndarray]) -> np.ndarray:
    """Run the library as another machine would, without costlib."""
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
    output = machine["main"](*[tvm.runtime.tensor(array) for array in inputs])
    return np.asarray(output.numpy())


def main(trials: int = 64, out: str | Path = "runs/feed_forward") -> np.ndarray:
    """Tune, compile, run; return the output."""
    network, inputs = module()
    result = costlib.tune(network, out=out, trials=trials)
    (tuned,) = result.networks
    print(
        f"untuned {1e3 * tuned.latency_before_s:.3f} ms, tuned {1e3 * tuned.latency_after_s:.3f} ms"
    )
    return deployed(Path(tuned.library), inputs)


if __name__ == "__main__":
    main()
