"""What a forked child does: build one program, run one, or check one's output.

Everything here may crash, hang or run out of memory; only the child is lost.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.ma  # Which a median needs: once here, not in each child.

from costlib.arrays import Float32s, Floats, load_arrays, save_arrays
from costlib.canary_times import CanaryTimes
from costlib.hardware import make_target
from costlib.measure.canary import Canary
from costlib.measure.config import (
    Arguments,
    BuildJob,
    CanaryJob,
    CheckJob,
    NetworkJob,
    Outcome,
    RunJob,
    Timing,
    TraceJob,
)
from costlib.tvm_compat import relax, tvm
from costlib.tvm_compat.api import build_library, module_from_json
from costlib.tvm_compat.direct_calls import TRACED
from costlib.tvm_compat.straight_line import tensor_bytes

RELATIVE_TOLERANCE = 1e-3
"""Of an output against the unscheduled program's, relative to its largest element."""

_COARSE = {"float16": 5e-3, "bfloat16": 4e-2}
"""The same of types with few digits, which sums in another order round differently."""

SLOW_SECS = 0.25
"""A call of a network that takes so long is hardly disturbed, nor is it longer for being the first.
"""

_MAX_CALLS = 10_000
_SAMPLE_SECS = 50e-6
_GLANCE_CALLS = 4
_GLANCE_SECS = 0.03
"""A glance at a program takes so many calls, or this long."""

_HOPELESS = 1.5
"""A program whose first, cold call is this much slower still gets two calls more; or none, if
that took so long that caches were warm for most of it."""

_LONG_SECS = 0.05
"""A call that takes so long is hardly longer for being the first."""


def build(job: BuildJob, target: Any) -> Outcome:
    """Compile the module, to a temporary name first: a killed build leaves no half library."""
    path = Path(job.path)
    partial = path.with_suffix(".partial.so")
    mod = module_from_json(job.mod_json)
    if job.target is not None:
        target = make_target(job.target)
    kernels = build_library(
        mod, target, partial, keep_layout=job.keep_layout, leave_source=job.leave_source
    )
    partial.rename(path)
    return Outcome(kernels=kernels)


def run(job: RunJob, canary: Canary) -> Timing:
    """Time the program: a cold call, a glance, repeats only if it can still matter."""
    config = job.config
    library = tvm.runtime.load_module(job.path)
    arguments = allocate(job.arguments, canary.device)
    if canary.is_on_cpu:
        kernel = library["main"]
        turns = itertools.cycle(_in_turns(job, arguments, canary.device))
        call_secs = _clocked(lambda: kernel(*next(turns)))
    else:
        call_secs = device_stopwatch(library, arguments, canary.device)
    too_slow_s = math.inf if job.best_s is None else config.race_factor * job.best_s
    warm_up_secs = call_secs()
    is_hopeless = warm_up_secs > _HOPELESS * too_slow_s
    before = canary.measure()
    if is_hopeless and warm_up_secs >= _LONG_SECS:
        secs = warm_up_secs
    else:
        secs = _fastest(call_secs, _GLANCE_SECS, 2 if is_hopeless else _GLANCE_CALLS)
    repeat = _Repeat(secs, before, canary.measure())
    before = repeat.after
    glance = _timing([repeat], raced=True)
    if job.reference is not None and glance.latency_s(job.reference) > too_slow_s:
        return glance

    # One sample spans several calls of a short program: the clock must not be part of it.
    calls = 1 if config.flush_cache else min(math.ceil(_SAMPLE_SECS / secs), _MAX_CALLS)
    samples = min(max(1, round(config.repeat_secs / (calls * secs))), _MAX_CALLS)
    if job.cold is not None:
        some = range(calls)
        sample_secs = _clocked(lambda: [kernel(*next(turns)) for _ in some])

        def repeated() -> float:
            return min(sample_secs() for _ in range(samples)) / calls

    else:
        evaluator = library.time_evaluator(
            "main",
            canary.device,
            number=calls,
            repeat=samples,
            f_preproc="cache_flush_cpu_non_first_arg" if config.flush_cache else "",
        )

        def repeated() -> float:
            return min(float(sample) for sample in evaluator(*arguments).results)

    taken: list[_Repeat] = []
    retakes = config.max_retakes
    while len(taken) < config.repeats:
        repeat = _Repeat(repeated(), before, canary.measure())
        before = repeat.after
        if retakes and not repeat.is_steady(config.max_drift):
            retakes -= 1
        else:
            taken.append(repeat)
    return _timing(taken, raced=False)


def _in_turns(job: RunJob, arguments: list[Any], device: Any) -> list[list[Any]]:
    """Return what calls take one after the other: the same, or each other copies of weights."""
    if job.cold is None:
        return [arguments]
    shapes = [job.arguments[number] for number in job.cold.arguments]
    nbytes = sum(tensor_bytes(shape, dtype) for dtype, shape in shapes)
    turns = [arguments]
    for _ in range(-(-job.cold.nbytes // nbytes)):
        own = list(arguments)
        for number in job.cold.arguments:
            own[number] = arguments[number].copyto(device)
        turns.append(own)
    return turns


def check(job: CheckJob, device: Any) -> None:
    """Raise ``ValueError`` unless both libraries compute the same from the same inputs.

    The reference runs on the CPU; a program without a schedule runs on nothing else.
    """
    results = []
    for path, place in ((job.reference_path, tvm.cpu()), (job.path, device)):
        arguments = allocate(job.arguments, place)
        tvm.runtime.load_module(path)["main"](*arguments)
        results.append([argument.numpy() for argument in arguments])
    for expected, actual in zip(*results, strict=True):
        error = _difference(expected.astype("float64"), actual.astype("float64"))
        if not error <= _COARSE.get(str(expected.dtype), RELATIVE_TOLERANCE):
            raise ValueError(f"output differs from the unscheduled program's by {error:.2e}")


def _difference(expected: Floats, actual: Floats) -> float:
    """Return the largest difference relative to the largest element; NaN is equal to NaN."""
    same = (expected == actual) | (np.isnan(expected) & np.isnan(actual))
    scale = float(np.max(np.abs(expected), initial=0, where=np.isfinite(expected))) or 1.0
    with np.errstate(invalid="ignore"):
        return float(np.max(np.abs(expected - actual), initial=0, where=~same)) / scale


def run_network(job: NetworkJob, canary: Canary) -> Timing:
    """Time a compiled network: its fastest call after the first, or that one if it is slow."""
    main, inputs = _network(job, job.function, canary.device)

    def call() -> Any:
        outputs = main(*inputs)
        canary.device.sync()
        return outputs

    before = canary.measure()
    start = time.perf_counter()
    outputs = call()
    secs = time.perf_counter() - start
    if job.outputs is not None:
        results = [outputs] if hasattr(outputs, "numpy") else list(outputs)
        save_arrays(Path(job.outputs), [result.numpy() for result in results])
    if secs < SLOW_SECS:
        before = canary.measure()
        secs = fastest_call(call, job.secs)
    return _timing([_Repeat(secs, before, canary.measure())], raced=False)


def trace_network(job: TraceJob, canary: Canary) -> Timing:
    """Note the times of a compiled network's kernels, call by call."""
    traced, inputs = _network(job, TRACED, canary.device)
    traced(*inputs)
    before = canary.measure()
    starts, ends = [time.perf_counter()], [time.perf_counter()]
    clocks: list[Any] = []
    while len(clocks) < 2 or ends[-1] < starts[0] + job.secs:
        starts.append(time.perf_counter())
        outputs = traced(*inputs)
        ends.append(time.perf_counter())
        clocks.append(outputs[-1].numpy())
    ticks = np.array(clocks)
    tick_secs = (starts[-1] - starts[1]) / (ticks[-1, 0] - ticks[0, 0])
    kernels = np.diff(ticks) * tick_secs
    calls = np.subtract(ends, starts)[1:]
    save_arrays(Path(job.times), [np.column_stack([kernels, calls - kernels.sum(1)])])
    return _timing([_Repeat(float(calls.min()), before, canary.measure())], raced=False)


def _network(job: NetworkJob | TraceJob, name: str, device: Any) -> tuple[Any, list[Any]]:
    """Load a compiled network; return a function of it and its inputs."""
    machine = relax.VirtualMachine(tvm.runtime.load_module(job.path), device)
    inputs = [tvm.runtime.tensor(array, device) for array in load_arrays(Path(job.inputs))]
    return machine[name], inputs


def device_stopwatch(library: Any, arguments: list[Any], device: Any) -> Callable[[], float]:
    """Return what calls ``main`` once, by the device's own timer: that is without launching it."""
    evaluator = library.time_evaluator("main", device, number=1, repeat=1)
    return lambda: float(evaluator(*arguments).results[0])


def fastest_call(call: Callable[[], Any], secs: float, max_calls: int = _MAX_CALLS) -> float:
    """Call again and again for a while, at least once; return the seconds of the fastest call."""
    return _fastest(_clocked(call), secs, max_calls)


def _clocked(call: Callable[[], Any]) -> Callable[[], float]:
    def call_secs() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return call_secs


def _fastest(call_secs: Callable[[], float], secs: float, max_calls: int) -> float:
    fastest = math.inf
    end = time.perf_counter() + secs
    for _ in range(max_calls):
        fastest = min(fastest, call_secs())
        if time.perf_counter() >= end:
            break
    return fastest


def sample_canary(job: CanaryJob, canary: Canary) -> Timing:
    """Time the canaries alone."""
    times = [canary.measure() for _ in range(job.samples)]
    return Timing(
        run_secs=(),
        canary_compute=tuple(t.compute_s for t in times),
        canary_memory=tuple(t.memory_s for t in times),
        raced=False,
    )


class _Repeat(NamedTuple):
    seconds: float
    before: CanaryTimes
    after: CanaryTimes

    def is_steady(self, share: float) -> bool:
        """Whether the compute canary stayed the same; the memory canary never quite does."""
        return abs(math.log(self.before.compute_s / self.after.compute_s)) <= share


def _timing(repeats: list[_Repeat], *, raced: bool) -> Timing:
    canaries = [repeat.before.better_of(repeat.after) for repeat in repeats]
    return Timing(
        run_secs=tuple(repeat.seconds for repeat in repeats),
        canary_compute=tuple(canary.compute_s for canary in canaries),
        canary_memory=tuple(canary.memory_s for canary in canaries),
        raced=raced,
    )


@functools.cache
def random_pool() -> Float32s:
    """Return a million random numbers in [0.1, 1): never zero, never denormal when multiplied."""
    return np.random.default_rng(0).uniform(0.1, 1.0, 1 << 20).astype("float32")


def allocate(arguments: Arguments, device: Any) -> list[Any]:
    """Make tensors: random floats in [0.1, 1), integers 1 (a valid index into any axis)."""
    tensors = []
    for dtype, shape in arguments:
        size = math.prod(shape)
        if "float" in dtype:
            values = np.resize(random_pool(), size).astype(dtype)
        else:
            values = np.ones(size, dtype)
        tensors.append(tvm.runtime.tensor(values.reshape(shape), device))
    return tensors
