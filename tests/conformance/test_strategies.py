"""The strategies of costlib, held to :class:`costlib.testing.strategies.StrategySuite`.

The example in CONTRIBUTING.md is held to the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import costlib
from costlib.hub import Bundle
from costlib.search.evolution.search import EvolutionConfig
from costlib.search.random_search import RandomConfig
from costlib.search.strategy import StrategyConfig
from costlib.testing.strategies import StrategySuite


def example() -> StrategyConfig:
    guide = (Path(costlib.__file__).parents[1] / "CONTRIBUTING.md").read_text()
    found = re.search(r"```python\n(# hill_climbing\.py\n.*?)```", guide, re.S)
    assert found is not None
    module = ModuleType("hill_climbing")
    exec(found[1], module.__dict__)
    config: StrategyConfig = module.HillClimbingConfig()
    return config


class WithABundle(StrategySuite):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def warm(cls, bundle: Bundle) -> None:
        cls.bundle = bundle


class TestEvolution(WithABundle):
    config = EvolutionConfig(population=32, generations=2, survivors=2, early_survivors=2)


class TestRandomSearch(WithABundle):
    config = RandomConfig()


class TestExampleOfTheGuide(WithABundle):
    config = example()
