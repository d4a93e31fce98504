"""How a search suits what it may spend."""

from __future__ import annotations

import pytest

from costlib.search.config import SearchConfig
from costlib.search.tasks.planning import PlanningConfig
from costlib.tuning.budget import for_budget


@pytest.mark.parametrize(("each", "batch"), [(1, 1), (2, 1), (4, 2), (16, 4), (200, 4)])
def test_batches_are_smaller_where_there_are_few_trials(each: int, batch: int) -> None:
    assert for_budget(SearchConfig(), 10 * each, 10).planning.batch == batch


def test_a_smaller_batch_that_was_asked_for_stays() -> None:
    config = SearchConfig(planning=PlanningConfig(batch=2))
    assert for_budget(config, 1000, 2).planning.batch == 2


def test_nothing_to_tune_is_no_error() -> None:
    assert for_budget(SearchConfig(), 10, 0) == SearchConfig()
