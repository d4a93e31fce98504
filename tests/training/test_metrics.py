from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.training.metrics import evaluate_scores, expected_best, rank_correlation, top_k

LATENCIES = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=7).map(np.array)


@given(LATENCIES, st.integers(1, 9))
def test_expected_best_is_the_mean_over_all_picks(latency_s: np.ndarray, k: int) -> None:
    picks = itertools.combinations(latency_s, min(k, len(latency_s)))
    assert expected_best(latency_s, k) == pytest.approx(np.mean([min(pick) for pick in picks]))


def test_known_values() -> None:
    latency_s = np.array([1.0, 2.0, 4.0, 3.0, 6.0])
    scores = np.array([0.1, 0.9, 0.5, 0.4, 0.3])
    groups = np.array([0, 0, 0, 1, 1])
    found = evaluate_scores(scores, latency_s, groups, weights=[2.0, 1.0])
    # Task 0 (weight 2): best 1, first choice 2. Task 1: best 3, first choice 3.
    assert found.top1 == pytest.approx((2 * 1 + 3) / (2 * 2 + 3))
    assert found.top1_task_mean == pytest.approx((1 / 2 + 1) / 2)
    assert found.top5 == found.top5_task_mean == 1
    # Task 0: (1, 2) wrong, (1, 4) wrong, (2, 4) right. Task 1: right.
    assert found.pairwise_accuracy == pytest.approx((1 / 3 + 1) / 2)
    assert (found.tasks, found.programs) == (2, 5)


def test_without_weights_the_slowest_task_does_not_decide() -> None:
    latency_s = np.array([1e-6, 2e-6, 1.0, 4.0])
    scores = np.array([0.1, 0.9, 0.5, 0.4])
    found = evaluate_scores(scores, latency_s, np.array([0, 0, 1, 1]))
    assert found.top1 == pytest.approx(2 / (2 + 1))
    assert found.random_top1 == pytest.approx(2 / (1.5 + 2.5))


def test_intervals_grow_narrow_with_tasks() -> None:
    latency_s = np.array([1.0, 2.0, 1.0, 2.0])
    scores = np.array([0.9, 0.1, 0.1, 0.9])  # Of two kinds of tasks, one is ranked right.
    widths = []
    for count in (5, 200):
        groups = np.repeat(np.arange(2 * count), 2)
        found = evaluate_scores(np.tile(scores, count), np.tile(latency_s, count), groups)
        low, high = found.top1_interval
        assert low < found.top1 < high
        assert found.top5_interval == (1, 1)
        widths.append(high - low)
    assert widths[1] < widths[0] / 3


@given(LATENCIES)
def test_perfect_scores_are_perfect(latency_s: np.ndarray) -> None:
    found = evaluate_scores(-latency_s, latency_s, np.zeros(len(latency_s), "int64"))
    assert found.top1 == found.top5 == 1
    assert found.pairwise_accuracy == 1 or np.isnan(found.pairwise_accuracy)


@given(LATENCIES)
def test_equal_scores_are_guessing(latency_s: np.ndarray) -> None:
    groups = np.zeros(len(latency_s), "int64")
    found = evaluate_scores(np.zeros(len(latency_s)), latency_s, groups)
    assert found.pairwise_accuracy == 0.5 or np.isnan(found.pairwise_accuracy)


def test_top_k_takes_the_highest_scores() -> None:
    assert top_k(np.array([1.0, 3.0, 2.0]), np.array([1.0, 5.0, 4.0]), 2) == 4.0


def test_rank_correlation_is_spearmans() -> None:
    assert rank_correlation(np.array([3.0, 2.0, 1.0]), np.array([1.0, 5.0, 9.0])) == 1
    assert rank_correlation(np.array([1.0, 2.0, 3.0]), np.array([1.0, 5.0, 9.0])) == -1
    assert np.isnan(rank_correlation(np.zeros(3), np.array([1.0, 5.0, 9.0])))
