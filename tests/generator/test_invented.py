from __future__ import annotations

from itertools import islice

import numpy as np

from costlib.data.splits import WorkloadKey
from costlib.generator import invented
from costlib.generator.invented import invented_tasks
from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace


def test_tasks_are_new_and_tunable(hardware: Hardware) -> None:
    tasks = list(invented_tasks(4, hardware, (), 0))
    assert len({task.workload_id for task in tasks}) == 4
    assert all(task.target == hardware.target for task in tasks)
    assert all(invented.FLOPS[0] <= task.flops <= invented.FLOPS[1] for task in tasks)
    assert sum(DesignSpace(task).is_tunable for task in tasks) >= 3


def test_half_of_the_convolutions_have_channels_last() -> None:
    rng = np.random.default_rng(0)
    specs = [invented._operator(rng) for _ in range(400)]
    convolutions = [spec for spec in specs if "conv" in spec]
    last = [spec for spec in specs if spec.endswith("+nhwc")]
    assert set(last) <= set(convolutions)
    assert 0.4 < len(last) / len(convolutions) < 0.6


def test_the_same_seed_gives_the_same_tasks(hardware: Hardware) -> None:
    def ids(seed: int) -> list[str]:
        return [task.workload_id for task in invented_tasks(2, hardware, (), seed)]

    assert ids(3) == ids(3) != ids(4)


def test_what_a_model_is_judged_on_is_not_invented(hardware: Hardware) -> None:
    first, second = islice(invented_tasks(2, hardware, (), 0), 2)
    shapes = [shape for _, shape in first.arguments]
    judged = WorkloadKey.of("another id", first.name, shapes)
    (now_first,) = invented_tasks(1, hardware, [judged], 0)
    assert now_first.workload_id == second.workload_id


def test_extents_of_all_factors() -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([invented.extent(rng, 8, 768) for _ in range(2000)])
    assert drawn.min() >= 7 and drawn.max() <= 800
    for factor in (3, 5, 7):
        assert 0.02 < (drawn % factor == 0).mean() < 0.5


def test_none_for_hardware_that_tvm_cannot_compile_for(hardware: Hardware) -> None:
    unknown = hardware.model_copy(update={"target": {"kind": "llvm", "mcpu": "nothing-like-this"}})
    assert list(invented_tasks(2, unknown, (), 0)) == []
