"""Tune a network with the shipped bundle under several seeds and note what came out.

python -m tools.benchmarks.tune bert_tiny --trials 64 --seeds 0 1     # writes tools/results/
"""

from __future__ import annotations

import argparse
import tempfile

from costlib.tuning.tune import tune
from tools.evidence.files import write_result


def main() -> None:
    """Tune under each seed and write ``tools/results/tune_<network>.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    arguments = parser.parse_args()
    runs = []
    for seed in arguments.seeds:
        with tempfile.TemporaryDirectory(prefix="costlib-") as out:
            result = tune(arguments.network, out=out, trials=arguments.trials, seed=seed)
        runs.append(result.model_dump(mode="json", exclude={"networks": {0: {"library"}}}))
        keys = ("latency_before_s", "latency_after_s", "pytorch_latency_s")
        print(seed, {key: runs[-1]["networks"][0][key] for key in keys}, flush=True)
    write_result(f"tune_{arguments.network}", runs)


if __name__ == "__main__":
    main()
