from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest

from costlib.canary_times import CanaryTimes
from costlib.hardware import Hardware
from costlib.measure import jobs
from costlib.measure.cold_weights import as_called, copies_of_weights
from costlib.measure.config import ColdWeights, MeasureConfig, RunJob
from costlib.measure.measurement import Candidate
from costlib.measure.measurer import Measurer
from costlib.schema import CacheState, Status
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import tvm
from costlib.workloads import Task, extract_tasks

COLD = MeasureConfig(repeats=2, repeat_secs=0.001, max_retakes=0, cold_weights=True)
LARGE = 1 << 20


@pytest.fixture(scope="module")
def layer(hardware: Hardware) -> Task:
    """A layer of 1 MiB of weights."""
    return extract_tasks("dense 1 512 512", hardware)[0]


@pytest.fixture(scope="module")
def small_cache(hardware: Hardware) -> Hardware:
    return hardware.model_copy(update={"cache_bytes": (1 << 15, LARGE)})


@pytest.fixture(scope="module")
def measurer(small_cache: Hardware) -> Iterator[Measurer]:
    with Measurer(small_cache, COLD) as measurer:
        yield measurer


def test_constants_are_weights(layer: Task, matmul: Task) -> None:
    assert layer.weights == (1,)
    assert layer.weight_bytes == 4 * 512 * 512
    assert matmul.weights == ()
    assert matmul.weight_bytes == 0


def test_weights_are_cold_where_those_of_the_network_exceed_the_cache(
    layer: Task, matmul: Task, small_cache: Hardware
) -> None:
    few = extract_tasks("dense 4 16 16", small_cache)[0]
    tasks = [layer, layer, matmul, few]
    found = as_called(tasks, [LARGE, LARGE + 1, 9 * LARGE, 9 * LARGE], small_cache, COLD)
    warm, cold = CacheState.WARM, CacheState.COLD_WEIGHTS
    assert [task.cache for task in found] == [warm, cold, warm, warm]
    assert [task.workload_id for task in found] == [task.workload_id for task in tasks]
    assert copies_of_weights(found[0], small_cache) is None
    copies = copies_of_weights(found[1], small_cache)
    assert copies == ColdWeights(arguments=(1,), nbytes=2 * LARGE)


@pytest.mark.parametrize(
    ("device", "config"),
    [
        (None, MeasureConfig(cold_weights=False)),
        (None, COLD.model_copy(update={"memory_bytes": 8 * LARGE})),
        (Hardware.aarch64(), COLD),
        (Hardware.cuda("sm_90"), COLD),
    ],
)
def test_weights_stay_warm(
    device: Hardware | None, config: MeasureConfig, layer: Task, small_cache: Hardware
) -> None:
    (found,) = as_called([layer], [100 * LARGE], device or small_cache, config)
    assert found.cache is CacheState.WARM


def test_a_program_is_measured_as_its_task_is_called(layer: Task, measurer: Measurer) -> None:
    valid = (Candidate(p, s) for p, s in DesignSpace(layer).sample(0) if s is not None)
    drawn = list(itertools.islice(valid, 2))
    for state in CacheState:
        for found in measurer.measure(replace(layer, cache=state), drawn):
            assert found.status is Status.OK, found.error
            assert found.cache is state
            assert found.latency_s is not None
    (invalid,) = measurer.measure(
        replace(layer, cache=CacheState.COLD_WEIGHTS), [Candidate(drawn[0].program, None)]
    )
    assert (invalid.status, invalid.cache) == (Status.INVALID, CacheState.COLD_WEIGHTS)


def test_calls_take_turns_with_copies_of_the_weights_alone() -> None:
    shapes = (("float32", (4, 8)), ("bfloat16", (8, 16)), ("float32", (16,)), ("float32", (4, 16)))
    arguments = jobs.allocate(shapes, tvm.cpu())
    cold = ColdWeights(arguments=(1, 2), nbytes=1000)
    job = RunJob(path="", arguments=shapes, config=COLD, cold=cold)
    turns = jobs._in_turns(job, arguments, tvm.cpu())
    assert len(turns) == 1 + math.ceil(1000 / (2 * 8 * 16 + 4 * 16))
    for number in (0, 3):
        assert all(turn[number].same_as(arguments[number]) for turn in turns)
    for number in (1, 2):
        assert not any(a[number].same_as(b[number]) for a, b in itertools.combinations(turns, 2))
        expected = arguments[number].numpy().astype("float32").tolist()
        assert all(t[number].numpy().astype("float32").tolist() == expected for t in turns)
    plain = job.model_copy(update={"cold": None})
    assert jobs._in_turns(plain, arguments, tvm.cpu()) == [arguments]


class StillCanary:
    """Of a machine whose speed does not change."""

    is_on_cpu, device = True, tvm.cpu()

    def measure(self) -> CanaryTimes:
        return CanaryTimes(compute_s=1e-3, memory_s=1e-3)


def test_each_call_takes_the_next_copy(
    layer: Task, small_cache: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    kernel = {"main": lambda *arguments: seen.append(id(arguments[1]))}
    monkeypatch.setattr(tvm.runtime, "load_module", lambda _: kernel)
    copies = copies_of_weights(replace(layer, cache=CacheState.COLD_WEIGHTS), small_cache)
    job = RunJob(path="", arguments=layer.arguments, config=COLD, cold=copies)
    timing = jobs.run(job, StillCanary())  # type: ignore[arg-type]
    assert len(timing.run_secs) == COLD.repeats
    assert len(set(seen[:3])) == 3
    assert seen == [seen[number % 3] for number in range(len(seen))]
    assert len(seen) > 100
