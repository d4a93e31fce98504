"""Elementary functions and reductions as stock TVM compiles them and as costlib lets it.

What is compared is speed and accuracy.

    python -m tools.benchmarks.vector_math   # writes tools/results/vector_math.json

Both compile the same programs, each in processes of its own that take turns.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from tools.benchmarks.in_a_process import in_a_process
from tools.evidence.files import write_result

MCPU = "x86-64-v3"
NUMBERS = 1 << 15
LANES = 8
SIDES = ("tvm", "costlib")
TURNS = 5
CALLS = 200
EXACT = {"exp": np.exp, "erf": special.erf, "tanh": np.tanh, "sigmoid": special.expit}
COLUMNS = 197
REDUCED = {
    "sum": lambda x: x.sum(1),
    "max": lambda x: x.max(1),
    "softmax": lambda x: special.softmax(x, 1),
}
RANGES = {"exp": (-87.3, 88.7), "erf": (-5.0, 5.0), "tanh": (-9.0, 9.0), "sigmoid": (-80.0, 80.0)}


def main() -> None:
    """Let both sides take turns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measured(given.side)))
        return
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for _ in range(given.turns):
        for side, turns in found.items():
            turns.append(in_a_process("tools.benchmarks.vector_math", "--side", side))
    result = {
        name: {
            side: {
                "ns": round(float(np.median([turn[name]["ns"] for turn in turns])), 3),
                "ns_range": [f(round(turn[name]["ns"], 3) for turn in turns) for f in (min, max)],
                "relative_error": turns[0][name]["relative_error"],
            }
            for side, turns in found.items()
        }
        for name in (*EXACT, *REDUCED)
    }
    write_result("vector_math", {"mcpu": MCPU, "columns": COLUMNS, "functions": result})
    print(json.dumps(result, indent=1))


def measured(side: str) -> dict[str, dict[str, float]]:
    """Return ns a number, and the largest relative error, of each function and reduction."""
    if side == "costlib":
        import costlib.tvm_compat  # noqa: F401
    import tvm
    from tvm import te, topi

    result = {}
    for name, exact in EXACT.items():
        given = te.placeholder((NUMBERS,), "float32", name="given")
        made = te.compute((NUMBERS,), of_each(getattr(te, name), given), name="made")
        schedule = tvm.s_tir.Schedule(te.create_prim_func([given, made]))
        (loop,) = schedule.get_loops(schedule.get_sblock("made"))
        schedule.vectorize(schedule.split(loop, [None, LANES])[1])
        numbers = np.linspace(*RANGES[name], NUMBERS).astype("float32")
        result[name] = timed(schedule.mod, numbers, exact(numbers.astype("float64")))
    for name, exact in REDUCED.items():
        rows = np.random.default_rng(0).random((NUMBERS // COLUMNS, COLUMNS), "float32")
        given = te.placeholder(rows.shape, "float32", name="given")
        made = topi.nn.softmax(given) if name == "softmax" else getattr(topi, name)(given, 1)
        mod = tvm.IRModule({"main": te.create_prim_func([given, made])})
        result[name] = timed(mod, rows, exact(rows.astype("float64")))
    return result


def timed(mod: Any, numbers: Any, wanted: Any) -> dict[str, float]:
    """Compile a program of numbers, call it, and hold what it computes against what is wanted."""
    import tvm

    main = tvm.compile(mod, target={"kind": "llvm", "mcpu": MCPU})["main"]
    given, found = (tvm.runtime.tensor(a) for a in (numbers, np.zeros(wanted.shape, "float32")))
    fastest_s = float("inf")
    for _ in range(CALLS):
        started = time.perf_counter()
        main(given, found)
        fastest_s = min(fastest_s, time.perf_counter() - started)
    error = np.abs(found.numpy() / wanted - 1)[wanted != 0].max()
    return {"ns": 1e9 * fastest_s / numbers.size, "relative_error": float(f"{error:.2g}")}


def of_each(function: Callable[[Any], Any], numbers: Any) -> Callable[[Any], Any]:
    """Return what maps an index to a function of the number there."""
    return lambda index: function(numbers[index])


if __name__ == "__main__":
    main()
