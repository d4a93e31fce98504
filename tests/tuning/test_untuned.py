"""Which tasks deserve a trial."""

from __future__ import annotations

import pytest

from costlib.hardware import Hardware
from costlib.tuning.untuned import worth_tuning
from costlib.workloads import Task, extract_tasks


@pytest.fixture(scope="module")
def tasks(hardware: Hardware) -> list[Task]:
    (product,) = extract_tasks("matmul 256 256 256", hardware)
    (softmax,) = extract_tasks("softmax 64 64", hardware)
    return [product, softmax.times(4)]


def test_a_task_that_is_lost_beside_untuned_products_is_worth_tuning(
    hardware: Hardware, tasks: list[Task]
) -> None:
    assert worth_tuning(tasks, [10.0, 1e-4], hardware, 64) == [0, 1]


def test_a_task_is_left_alone_if_its_share_is_below_one_trial(
    hardware: Hardware, tasks: list[Task]
) -> None:
    few, many = 8, 8_000
    product, _ = tasks
    tuned_s = product.flops / (hardware.num_cores * 8e9 * hardware.vector_bits / 32)
    before_s = [10.0, tuned_s / 400]
    assert worth_tuning(tasks, before_s, hardware, few) == [0]
    assert worth_tuning(tasks, before_s, hardware, many) == [0, 1]


def test_a_task_that_does_not_run_untuned_is_worth_tuning(
    hardware: Hardware, tasks: list[Task]
) -> None:
    assert worth_tuning(tasks, [1e-9, None], hardware, 1) == [1]
