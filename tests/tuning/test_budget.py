"""How a search suits what it may spend."""

from __future__ import annotations

import pytest

from costlib.search.config import SearchConfig
from costlib.search.tasks.planning import PlanningConfig
from costlib.tuning.budget import for_budget


@pytest.mark.parametrize(("each", "batch"), [(1, 1), (2, 1), (4, 2), (16, 4), (200, 4)])
def test_batches_are_smaller_where_there_are_few_trials(each: int, batch: int) -> None:
    assert for_budget(SearchConfig(), 10 * each, 10, pretrained=True).planning.batch == batch


def test_a_smaller_batch_that_was_asked_for_stays() -> None:
    config = SearchConfig(planning=PlanningConfig(batch=2))
    assert for_budget(config, 1000, 2, pretrained=True).planning.batch == 2


def test_nothing_to_tune_is_no_error() -> None:
    assert for_budget(SearchConfig(), 10, 0, pretrained=True) == SearchConfig()


@pytest.mark.parametrize(("each", "on"), [(1, True), (2, True), (4, False), (16, True)])
def test_diffusion_is_off_where_it_costs_without_a_bundle(each: int, on: bool) -> None:
    cold, warm = (
        for_budget(SearchConfig(), 10 * each, 10, pretrained=pretrained)
        for pretrained in (False, True)
    )
    assert (cold.relatives.diffusion, warm.relatives.diffusion) == (on, True)
    assert cold.planning == warm.planning
