"""LambdaRank as a differentiable loss, for models trained with torch."""

from __future__ import annotations

import torch

_GAIN = 5.0
"""A label of 1 is worth 2 to this power."""


def lambda_rank(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the loss of ranking each row's programs by their scores.

    Pairs in the wrong order cost the more, the more NDCG would gain by exchanging them
    (Burges 2010; the "NDCG-Loss2" of Wang et al., CIKM'18, that TenSet and TLP train with).

    Parameters
    ----------
    scores, labels
        float `t x p`: programs of `t` tasks; only those of one row are compared.

    Returns
    -------
    torch.Tensor
        The mean over the rows.
    """
    gains = torch.exp2(_GAIN * labels) - 1
    places = torch.arange(scores.shape[1], dtype=scores.dtype, device=scores.device)
    discounts = 1 / torch.log2(places + 2)
    ideal = (gains.sort(dim=1, descending=True).values * discounts).sum(1, keepdim=True)
    gains = gains / ideal.clamp_min(1e-9)
    ranks = scores.detach().argsort(dim=1, descending=True).argsort(dim=1)
    worth = discounts[ranks]
    weights = (gains[:, :, None] - gains[:, None, :]).abs() * (
        worth[:, :, None] - worth[:, None, :]
    ).abs()
    better = (labels[:, :, None] > labels[:, None, :]).to(scores.dtype)
    margins = scores[:, :, None] - scores[:, None, :]
    losses = torch.nn.functional.softplus(-margins) * weights * better
    return losses.sum((1, 2)).mean()
