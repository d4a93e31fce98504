"""3 x 3 convolutions of resnet_18 in three ways: directly, by Winograd's algorithm, as a product.

    python -m tools.benchmarks.im2col --runs runs/im2col
    python -m tools.benchmarks.im2col --runs runs/im2col --shapes 64x56 256x14 --per-task 32

The third way is im2col: what each output is made of is gathered into a row of a matrix, which is
multiplied by the weights. All have channels last, a bias and a ReLU. The tasks of all ways of all
shapes are tuned in one run, so that they take turns; its scheduler divides the trials. A way takes
what its tasks add up to; beside that stands what its product alone takes. A run that is there is
not tuned again. Writes ``tools/results/im2col.json``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from costlib.hardware import find_hardware
from costlib.tuning.networks import NetworkSet
from costlib.tuning.result import RESULT, TuneResult, read_result
from costlib.tuning.tune import tune
from costlib.tvm_compat import relax, te, topi, tvm
from costlib.workloads import Network, load_network
from costlib.workloads.folding import constant_of, fold_constants, is_call, static_type
from costlib.workloads.layout import CHANNELS_LAST, decomposed
from costlib.workloads.winograd import WINOGRAD
from tools.evidence.files import write_result

_FUSED_WITH_NOTHING = 8
"""TVM's kOpaque: what stands around an operator is not part of this comparison."""

_SHAPES = ("64x56", "128x28", "256x14")


def main() -> None:
    """Tune all ways of all shapes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", nargs="+", default=_SHAPES, metavar="CHANNELSxSIZE")
    parser.add_argument("--per-task", type=int, default=16, help="trials")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=Path, required=True, help="the run's folder")
    given = parser.parse_args()
    hardware = find_hardware("cpu", num_cores=given.threads)
    ways = {shape: _ways(shape) for shape in given.shapes}
    networks = [network for found in ways.values() for network in found.values()]
    out = given.runs
    if not (out / RESULT).exists():
        trials = given.per_task * len(NetworkSet.load(networks, hardware).tasks)
        tune(*networks, out=out, trials=trials, hardware=hardware, resume=out.exists())
    run = read_result(out)
    shapes = {
        shape: _taken(run, {way: network.name for way, network in found.items()})
        for shape, found in ways.items()
    }
    write_result("im2col", {"hardware": run.hardware_id, "trials": run.trials, "shapes": shapes})
    print(shapes)


def _ways(shape: str) -> dict[str, Network]:
    channels, size = shape.split("x")
    source = f"conv2d 1 {channels} {size} {size} {channels} 3 pad=1 bias=1 relu=1+{CHANNELS_LAST}"
    direct = load_network(source)
    return {
        "direct": direct,
        "winograd": load_network(f"{source}+{WINOGRAD}"),
        "im2col": replace(direct, name=f"{source} im2col", mod=by_im2col(direct.mod)),
    }


def _taken(run: TuneResult, names: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Look at the tasks of each way that the others do not have."""
    found = {}
    for way, name in names.items():
        own = [task for task in run.tasks if {*names.values()} & task.calls.keys() == {name}]
        product = max(own, key=lambda task: task.flops)
        found[way] = {
            "taken_s": sum(task.calls[name] * (task.latency_s or np.inf) for task in own),
            "product_s": product.latency_s or np.inf,
            "product_trials": product.trials,
        }
    return found


def by_im2col(mod: Any) -> Any:
    """Compute the convolutions of a Relax module, which have channels last, as products."""
    transform = relax.transform
    clean = [transform.CanonicalizeBindings(), transform.DeadCodeElimination()]
    passes = tvm.transform.Sequential([transform.FoldConstant(), *clean])
    mod = passes(fold_constants(decomposed(mod)))
    rewriter = _Rewriter(mod)
    main = mod.get_global_var("main")
    rewriter.builder_.update_func(main, rewriter.visit_expr(mod[main]))
    return passes(rewriter.builder_.get())


@relax.expr_functor.mutator
class _Rewriter(relax.PyExprMutator):  # type: ignore[misc]
    def visit_call_(self, call: Any) -> Any:
        shape, _ = static_type(call)
        call = self.visit_expr_post_order(call)
        if shape is None or not is_call(call, "relax.nn.conv2d"):
            return call
        image, weight = call.args
        kernel = np.asarray(weight.value.numpy())
        outputs, down, across, inputs = kernel.shape
        top, left, bottom, right = (int(n) for n in call.attrs.padding)

        def value(x: Any, n: Any, i: Any, j: Any, k: Any) -> Any:
            return x[n, i + k // (across * inputs), j + k // inputs % across, k % inputs]

        gathered = (*shape[:3], down * across * inputs)
        x = te.placeholder(*static_type(image))
        padded = topi.nn.pad(x, [0, top, left, 0], [0, bottom, right, 0], name="pad_temp")
        rows = te.compute(gathered, partial(value, padded), name="im2col")
        gather = te.create_prim_func([x, rows], index_dtype_override="int64")
        gather = gather.with_attr("op_pattern", _FUSED_WITH_NOTHING).without_attr("global_symbol")
        function = self.builder_.add_func(gather, "im2col")
        called = relax.call_tir(function, [image], relax.TensorType(gathered, "float32"))
        matrix = constant_of(np.ascontiguousarray(kernel.reshape(outputs, -1).T))
        return relax.op.matmul(self.builder_.emit(called), matrix)


if __name__ == "__main__":
    main()
