from __future__ import annotations

import torch

from costlib.models.baselines.ranking_loss import lambda_rank

LABELS = torch.tensor([[1.0, 0.5, 0.1]])


def test_the_right_order_costs_less() -> None:
    right = lambda_rank(torch.tensor([[3.0, 2.0, 1.0]]), LABELS)
    wrong = lambda_rank(torch.tensor([[1.0, 2.0, 3.0]]), LABELS)
    assert 0 < right < wrong


def test_a_confident_right_order_costs_next_to_nothing() -> None:
    assert lambda_rank(torch.tensor([[60.0, 30.0, 0.0]]), LABELS) < 1e-6


def test_equal_labels_are_not_compared() -> None:
    scores = torch.tensor([[1.0, -2.0, 5.0]], requires_grad=True)
    loss = lambda_rank(scores, torch.full((1, 3), 0.5))
    loss.backward()
    assert loss == 0
    assert scores.grad is not None
    assert (scores.grad == 0).all()


def test_rows_do_not_see_each_other() -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0], [9.0, -1.0, 0.0]])
    labels = torch.tensor([[0.2, 0.9, 0.4], [0.5, 1.0, 0.1]])
    both = lambda_rank(scores, labels)
    alone = [lambda_rank(scores[i : i + 1], labels[i : i + 1]) for i in range(2)]
    torch.testing.assert_close(both, sum(alone) / 2)


def test_the_gradient_pushes_the_best_up() -> None:
    scores = torch.zeros(1, 3, requires_grad=True)
    lambda_rank(scores, LABELS).backward()
    assert scores.grad is not None
    assert scores.grad[0, 0] < 0 < scores.grad[0, 2]
