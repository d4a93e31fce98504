"""How a search goes about what it may spend."""

from __future__ import annotations

from costlib.search.config import SearchConfig

_BATCHES_PER_TASK = 2
"""Batches that each task should get on average, if the budget allows."""


def for_budget(config: SearchConfig, trials: int, tasks: int) -> SearchConfig:
    """Return a search as it suits so many trials, all tasks together.

    Batches are smaller where the budget is small, so that the scheduler has a choice. No part of
    the search is switched off, as none is known to cost anything with few trials or with many
    (``docs/results/budgets.md``).
    """
    most = max(1, trials // (_BATCHES_PER_TASK * max(tasks, 1)))
    batch = min(config.planning.batch, most)
    planning = config.planning.model_copy(update={"batch": batch})
    return config.model_copy(update={"planning": planning})
