"""Ansor, run by an interpreter that has a TVM with ``auto_scheduler``, for :mod:`.peers` to drive.

It needs Python 3.8, nothing of costlib, and a folder to run in as its argument. It reads a job as a
line of JSON, and searches. After each batch it writes what it measured and waits for a line; when
the search has ended, each line it reads is the number of a trial to measure again. It ends with its
input.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

_BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a.equal(b),
    "!=": lambda a, b: a != b,
}
_NAMED = {
    **{"//": "floordiv", "%": "floormod", "/": "div", "min": "min", "max": "max"},
    **{"and": "all", "or": "any", "if": "if_then_else"},
}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""What tells axes apart: Ansor writes layouts of weights as sizes and names of axes in turns."""


def tensors_of(described: dict[str, Any], te: Any, constant: Any) -> list[Any]:
    """Return the inputs and outputs of :func:`tools.benchmarks.te_of_task.tensor_expressions`.

    Parameters
    ----------
    te, constant
        The module of tensor expressions, and what makes a number of a value and a dtype.
    """
    known = [
        te.placeholder(one["shape"], one["dtype"], name=f"input{number}")
        for number, one in enumerate(described["inputs"])
    ]
    free = {number for number, one in enumerate(described["inputs"]) if one["free"]}
    for stage in described["stages"]:
        known.append(_stage(stage, known, free, te, constant))
    return [*known[: len(described["inputs"])], *(known[n] for n in described["outputs"])]


def _stage(stage: dict[str, Any], known: list[Any], free: set[int], te: Any, constant: Any) -> Any:
    reduced = [
        te.reduce_axis((0, extent), name="r" + letter)
        for letter, extent in zip(_LETTERS, stage["reduced"])  # noqa: B905 - As old as Python 3.8.
    ]

    def of(expr: list[Any], axes: tuple[Any, ...]) -> Any:
        kind, *rest = expr
        if kind == "axis":
            return axes[rest[0]]
        if kind == "reduced":
            return reduced[rest[0]].var
        if kind == "number":
            # Indices are of 32 bits there.
            return constant(rest[0], "int32" if rest[1] == "int64" else rest[1])
        if kind == "load":
            return known[rest[0]](*(of(index, axes) for index in rest[1]))
        if kind == "cast":
            return of(rest[1], axes).astype(rest[0])
        if kind == "call":
            name = {"pow": "power", "fabs": "abs"}.get(rest[0], rest[0])
            return getattr(te, name)(*(of(one, axes) for one in rest[1:]))
        operands = [of(one, axes) for one in rest]
        return _BINARY[kind](*operands) if kind in _BINARY else getattr(te, _NAMED[kind])(*operands)

    def value(*axes: Any) -> Any:
        whole = of(stage["value"], axes)
        return getattr(te, stage["kind"])(whole, axis=reduced) if reduced else whole

    read = set(_read(stage["value"])) if reduced else set()
    weights = [known[number] for number in sorted(read.intersection(free))]
    attrs = {"layout_free_placeholders": weights} if weights else None
    axes = ["s" + letter for letter in _LETTERS[: len(stage["shape"])]]
    return te.compute(stage["shape"], value, name=stage["name"], attrs=attrs, varargs_names=axes)


def _read(expr: Any) -> Iterator[int]:
    """Yield the tensors that an expression reads."""
    if isinstance(expr, list):
        if expr[:1] == ["load"]:
            yield expr[1]
        for part in expr:
            yield from _read(part)


def main() -> None:
    """Search as the job says."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # What the search prints is no message.
    import tvm
    from tvm import auto_scheduler  # noqa: F401

    os.chdir(sys.argv[1])
    processors = tvm.get_global_func("target.llvm_get_cpu_archlist")(tvm.target.Target("llvm"))
    _say(channel, {"version": tvm.__version__, "processors": [str(one) for one in processors]})
    job = json.loads(sys.stdin.readline())
    random.seed(job["seed"])
    _Search(job, channel).run()


def _say(channel: Any, message: dict[str, Any]) -> None:
    channel.write(json.dumps(message) + "\n")
    channel.flush()


class _Search:
    def __init__(self, job: dict[str, Any], channel: Any) -> None:
        import tvm
        from tvm import auto_scheduler, te, tir

        self.job, self.channel = job, channel
        self.target = tvm.target.Target(job["target"])
        self.tasks, self.numbers = [], {}
        rewrite = auto_scheduler.LayoutRewriteOption.get_target_default(self.target, True)
        for number, described in enumerate(job["tasks"]):
            tensors = tensors_of(described, te, tir.const)
            dag = auto_scheduler.ComputeDAG(tensors)
            key = dag.workload_key()
            auto_scheduler.workload_registry.register_workload_tensors(key, tensors)
            task = auto_scheduler.SearchTask(
                workload_key=key,
                compute_dag=dag,
                target=self.target,
                layout_rewrite_option=rewrite,
                desc=described["name"],
            )
            task.id = number  # The authors of the diffusion look for it.
            self.tasks.append(task)
            self.numbers[key] = number
        self.best = [float("inf")] * len(self.tasks)
        self.leaders: dict[int, Any] = {}
        self.trials, self.measure_s = 0, 0.0
        for name in ("auto_scheduler.local_builder.build", "auto_scheduler.local_runner.run"):
            tvm._ffi.register_func(name, self._timed(tvm.get_global_func(name)), override=True)

    def run(self) -> None:
        """Search, then measure again what is asked for."""
        from tvm import auto_scheduler

        search = self

        class Callback(auto_scheduler.measure.PythonBasedMeasureCallback):  # type: ignore[misc]
            def callback(self, _policy: Any, inputs: Any, results: Any) -> None:
                search.note(inputs, results)

        job = self.job
        options = auto_scheduler.TuningOptions(
            num_measure_trials=job["trials"],
            num_measures_per_round=job["batch"],
            early_stopping=None,
            builder=auto_scheduler.LocalBuilder(int(job["build_secs"]), job["num_cores"]),
            runner=auto_scheduler.LocalRunner(
                timeout=int(job["run_secs"]),
                number=1,
                repeat=job["repeats"],
                min_repeat_ms=int(1000 * job["repeat_secs"]),
            ),
            measure_callbacks=[Callback()],
            verbose=0,
        )
        weights = [described["weight"] for described in job["tasks"]]
        auto_scheduler.TaskScheduler(self.tasks, weights, **job["scheduler"]).tune(options)
        _say(self.channel, {"done": True})
        for line in sys.stdin:
            _say(self.channel, {"run_secs": self.again(int(line))})

    def note(self, inputs: Any, results: Any) -> None:
        """Report a batch, and wait for the turn to come back."""
        number = self.numbers[inputs[0].task.workload_key]
        latencies = []
        for one, result in zip(inputs, results):  # noqa: B905 - As old as Python 3.8.
            costs = [float(cost) for cost in result.costs]
            latency_s = sum(costs) / len(costs) if int(result.error_no) == 0 else None
            if latency_s is not None and latency_s < self.best[number]:
                self.best[number] = latency_s
                self.leaders[self.trials] = (number, one.state)
            latencies.append(latency_s)
            self.trials += 1
        message = {"task": number, "latency_s": latencies, "measure_s": self.measure_s}
        self.measure_s = 0.0
        _say(self.channel, message)
        if not sys.stdin.readline():
            sys.exit("whoever asked has gone")

    def again(self, trial: int) -> list[float]:
        """Return the seconds that each repeat of a program takes, that was the best for a while."""
        import numpy as np
        import tvm

        if isinstance(self.leaders[trial], tuple):
            number, state = self.leaders[trial]
            task = self.tasks[number]
            schedule, arguments = task.compute_dag.apply_steps_from_state(
                state, layout_rewrite=task.layout_rewrite_option
            )
            built = tvm.build(schedule, arguments, target=self.target)
            rng = np.random.default_rng(0)
            arrays = []
            for argument in arguments:
                shape = [int(n) for n in argument.shape]
                drawn = rng.uniform(size=shape) if "float" in argument.dtype else np.zeros(shape)
                arrays.append(tvm.nd.array(drawn.astype(argument.dtype)))
            timed = built.time_evaluator(
                built.entry_name,
                tvm.cpu(),
                number=1,
                repeat=self.job["repeats"],
                min_repeat_ms=int(1000 * self.job["repeat_secs"]),
            )
            self.leaders[trial] = [timed, arrays]
        timed, arrays = self.leaders[trial]
        return [float(one) for one in timed(*arrays).results]

    def _timed(self, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = function(*arguments)
            self.measure_s += time.perf_counter() - began
            return result

        return call


if __name__ == "__main__":
    main()
