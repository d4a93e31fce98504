"""Which way the search changes programs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from costlib.search.run_model import Nothing, RunModel, RunModelConfig
from costlib.space.directions import DIRECTIONS, stock_probabilities

ALLOWED = np.array([[name != "thread_binding" for name in DIRECTIONS]] * 2)
BEST = [DIRECTIONS.index("unroll"), DIRECTIONS.index("tile_reduction")]


class Oracle:
    """A classifier that expects most of one direction for each of two programs."""

    def probabilities(self, schedules: Any, allowed: Any) -> Any:
        return np.full(allowed.shape, 1 / len(DIRECTIONS))

    def expected_gains(self, schedules: Any, allowed: Any) -> Any:
        return np.where(np.eye(len(DIRECTIONS))[BEST] > 0, 0.5, -0.5)


def chances(**settings: Any) -> Any:
    bundle: Any = SimpleNamespace(statement_model=Nothing, draft=None, directions=Oracle())
    model = RunModel(bundle, RunModelConfig(**settings))
    empty: Any = None
    return model.direction_chances(empty, ALLOWED)


def test_programs_move_where_most_is_expected_but_not_only_there() -> None:
    found = chances(directions=True)
    np.testing.assert_allclose(found.sum(1), 1)
    assert found.argmax(1).tolist() == BEST
    assert (found[ALLOWED] > 0).all() and (found[~ALLOWED] == 0).all()
    cool, warm = (chances(directions=True, direction_temperature=t) for t in (0.1, 10.0))
    assert (cool.max(1) > warm.max(1)).all()


def test_without_directions_they_move_as_metaschedule_does() -> None:
    np.testing.assert_array_equal(chances(directions=False), stock_probabilities(ALLOWED))
