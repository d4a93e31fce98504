"""A stock MetaSchedule script that starts from a pretrained bundle: three arguments are new.

python tools/examples/metaschedule_script.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import costlib
from costlib.metaschedule import Builder, PretrainedCostModel, Runner
from costlib.tvm_compat import ms, tvm


def matmul_relu() -> Any:
    """Return a module to tune."""
    from tvm import te

    a, b = (te.placeholder((256, 256), name=name) for name in "AB")
    k = te.reduce_axis((0, 256), name="k")
    product = te.compute((256, 256), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    relu = te.compute((256, 256), lambda i, j: te.max(product[i, j], 0.0), name="D")
    return tvm.IRModule({"main": te.create_prim_func([a, b, relu])})


def main(trials: int = 64) -> float:
    """Tune; return the best latency in seconds."""
    cores = costlib.Hardware.local().num_cores
    target = tvm.target.Target({"kind": "llvm", "num-cores": cores})
    bundle = costlib.load_pretrained()
    builder = Builder()
    with builder.measurer, tempfile.TemporaryDirectory() as folder:
        database = ms.tune_tir(
            mod=matmul_relu(),
            target=target,
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=min(16, trials),
            num_tuning_cores=cores,
            cost_model=PretrainedCostModel(bundle),  # 1. instead of "xgb"
            builder=builder,  # 2. instead of "local": its workers start in a moment,
            runner=Runner(builder),  # 3. and a slow moment of the machine is no slow program
        )
    best = database.query_tuning_record(matmul_relu(), target, "main")
    return min(float(seconds) for seconds in best.run_secs)


if __name__ == "__main__":
    print(f"{1e6 * main():.0f} us")
