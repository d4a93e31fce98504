from __future__ import annotations

import numpy as np
import pytest

from costlib.search.tasks.scheduler import TaskScheduler


def warmed_up(scheduler: TaskScheduler, latencies: list[list[float]]) -> TaskScheduler:
    for task, past in enumerate(latencies):
        for best_s in past:
            scheduler.observe(task, best_s)
    return scheduler


def test_every_task_comes_first_once() -> None:
    scheduler = TaskScheduler(np.ones((1, 3)))
    order = []
    for _ in range(3):
        choice = scheduler.choose([2, 0, 1])
        assert choice is not None
        assert choice.gain == np.inf
        order.append(choice.task)
        scheduler.observe(choice.task, 1.0)
    assert order == [2, 0, 1]


def test_the_heavier_task_is_chosen() -> None:
    scheduler = warmed_up(TaskScheduler(np.array([[1.0, 5.0]])), [[1.0], [1.0]])
    choice = scheduler.choose([0, 1])
    assert choice is not None
    assert choice.task == 1
    assert 0 < choice.gain < 1


def test_a_task_that_still_falls_is_chosen() -> None:
    scheduler = TaskScheduler(np.ones((1, 2)))
    warmed_up(scheduler, [[4.0, 3.0, 2.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    choice = scheduler.choose([0, 1])
    assert choice is not None
    assert choice.task == 0


def test_a_task_behind_similar_ones_is_chosen() -> None:
    scheduler = TaskScheduler(np.ones((1, 2)), flops=[1e9, 1e9], similar=["conv", "conv"])
    warmed_up(scheduler, [[0.5] * 4, [5.0] * 4])
    alone = warmed_up(TaskScheduler(np.array([[20.0, 1.0]])), [[0.5] * 4, [5.0] * 4])
    together, apart = scheduler.choose([0, 1]), alone.choose([0, 1])
    assert together is not None and apart is not None
    assert (together.task, apart.task) == (1, 0)


def test_a_task_that_stays_behind_similar_ones_does_not_get_everything() -> None:
    scheduler = TaskScheduler(np.ones((1, 3)), flops=[1e9] * 3, similar=["conv"] * 3)
    latencies = [[1.0], [1.0], [5.0]]
    warmed_up(scheduler, latencies)
    turns = [0, 0, 0]
    for _ in range(300):
        choice = scheduler.choose([0, 1, 2])
        assert choice is not None
        turns[choice.task] += 1
        scheduler.observe(choice.task, 5.0 if choice.task == 2 else 1.0)
    assert turns[0] + turns[1] > 50
    assert turns[2] > turns[0]


def test_a_network_that_is_fast_enough_gets_nothing() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 1.0]])
    scheduler = TaskScheduler(weights, "requirement", required_s=[2.0, 0.1])
    warmed_up(scheduler, [[1.0, 1.0], [0.2, 0.2]])
    choice = scheduler.choose([0, 1])
    assert choice is not None
    assert choice.task == 1
    assert scheduler.objective() == pytest.approx(2.2)


def test_speed_up_counts_networks_alike() -> None:
    weights = np.array([[1.0, 0.0], [0.0, 1.0]])
    total = warmed_up(TaskScheduler(weights, "sum"), [[10.0, 10.0], [1.0, 1.0, 1.0]])
    ratio = TaskScheduler(weights, "speedup", reference_s=[10.0, 1.0])
    warmed_up(ratio, [[10.0, 10.0, 10.0], [1.0, 1.0]])
    by_sum, by_ratio = total.choose([0, 1]), ratio.choose([0, 1])
    assert by_sum is not None and by_ratio is not None
    assert (by_sum.task, by_ratio.task) == (0, 1)
    assert ratio.objective() == pytest.approx(1)


def test_early_stop_leaves_what_no_longer_falls() -> None:
    latencies = [[9.0] * 8, [1.0, 0.9, 0.8]]
    for objective, expected in (("sum", 0), ("early-stop", 1)):
        scheduler = TaskScheduler(np.ones((1, 2)), objective)  # type: ignore[arg-type]
        choice = warmed_up(scheduler, latencies).choose([0, 1])
        assert choice is not None
        assert choice.task == expected


def test_a_task_that_never_runs_is_given_up() -> None:
    scheduler = TaskScheduler(np.ones((1, 2)))
    scheduler.observe(1, 1.0)
    for _ in range(3):
        choice = scheduler.choose([0, 1])
        assert choice is not None
        assert choice.task == 0
        scheduler.observe(0, None)
    choice = scheduler.choose([0, 1])
    assert choice is not None
    assert choice.task == 1
    assert scheduler.objective() == np.inf


def test_a_forecast_adds_up_what_is_expected() -> None:
    scheduler = TaskScheduler(np.array([[1.0, 1.0]]))
    assert scheduler.forecast([0, 1], 5) is None, "nothing is known of tasks without a latency"
    for best_s in (8.0, 4.0):
        for task in (0, 1):
            scheduler.observe(task, best_s)
    choice = scheduler.choose([0, 1])
    assert choice is not None
    assert scheduler.forecast([0, 1], 1) == pytest.approx(4 / 3 / 8) and choice.gain > 4 / 3 / 8
    gains = [scheduler.forecast([0, 1], count) or 0.0 for count in (0, 1, 4, 16)]
    assert gains[0] == 0 and gains == sorted(gains) and gains[-1] < 1
    assert scheduler.forecast([], 4) == 0
    assert scheduler.choose([0, 1]) == choice, "it only looks ahead"


def test_nothing_left() -> None:
    assert TaskScheduler(np.ones((1, 2))).choose([]) is None


def test_only_the_faster_version_of_a_network_counts() -> None:
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    history = [[3.0, 3.0], [2.0, 2.0], [0.5, 0.5]]
    scheduler = warmed_up(TaskScheduler(weights, alternatives=[0, 0, 1]), history)
    assert scheduler.objective() == pytest.approx(2.5)
    choice, apart = scheduler.choose([0, 1, 2]), warmed_up(TaskScheduler(weights), history)
    assert choice is not None and choice.task == 1
    assert apart.objective() == pytest.approx(5.5)


def test_versions_that_are_about_as_fast_both_count() -> None:
    weights = np.eye(2)
    scheduler = TaskScheduler(weights, alternatives=[0, 0])
    warmed_up(scheduler, [[1.02] * 2, [1.0] * 9])
    choice = scheduler.choose([0, 1])
    assert choice is not None and choice.task == 0


def test_a_network_without_tasks_changes_nothing() -> None:
    weights = np.array([[1.0, 2.0], [0.0, 0.0]])
    choice = warmed_up(TaskScheduler(weights), [[1.0], [1.0]]).choose([0, 1])
    assert choice is not None and choice.task == 1
