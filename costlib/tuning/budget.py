"""How a search goes about what it may spend."""

from __future__ import annotations

from costlib.search.config import SearchConfig

_BATCHES_PER_TASK = 2
"""Batches that each task should get on average, if the budget allows."""

_COSTLY = (3, 8)
"""Least and most trials a task with which diffusion costs more than it gains without a bundle: the
first programs of a task teach the run's model more than what look-alikes found so far is worth
(``docs/results/budgets.md``)."""


def for_budget(config: SearchConfig, trials: int, tasks: int, *, pretrained: bool) -> SearchConfig:
    """Return a search as it suits so many trials, all tasks together.

    Parameters
    ----------
    config
        What is to be made use of where it pays.
    trials, tasks
        What may be spent, and on how many tasks.
    pretrained
        Whether there is a bundle.
    """
    least, most = _COSTLY
    if pretrained or not least <= trials // max(tasks, 1) <= most:
        return with_batch(config, trials, tasks)
    relatives = config.relatives.model_copy(update={"diffusion": False})
    return with_batch(config.model_copy(update={"relatives": relatives}), trials, tasks)


def with_batch(config: SearchConfig, trials: int, tasks: int) -> SearchConfig:
    """Take smaller batches where the budget is small, so that the scheduler has a choice."""
    most = max(1, trials // (_BATCHES_PER_TASK * max(tasks, 1)))
    batch = min(config.planning.batch, most)
    planning = config.planning.model_copy(update={"batch": batch})
    return config.model_copy(update={"planning": planning})
