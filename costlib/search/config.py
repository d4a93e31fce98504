"""Settings of costlib's search: those of its parts, each declared beside the part."""

from __future__ import annotations

from pydantic import SerializeAsAny

from costlib.frozen import FrozenStrict
from costlib.search.evolution.search import EvolutionConfig
from costlib.search.run_model import RunModelConfig
from costlib.search.strategy import StrategyConfig
from costlib.search.tasks.planning import PlanningConfig
from costlib.search.tasks.relatives import RelativesConfig


class SearchConfig(FrozenStrict):
    """How programs are proposed; every part of the search can be switched off.

    Attributes
    ----------
    strategy
        How a task is searched: the config of a strategy, which starts it.
    models
        What is made use of in a bundle, and learnt in a run.
    planning
        How many programs are measured between two rounds of search, and when they are proposed.
    relatives
        Where good programs of look-alike tasks come from.
    """

    strategy: SerializeAsAny[StrategyConfig] = EvolutionConfig()
    models: RunModelConfig = RunModelConfig()
    planning: PlanningConfig = PlanningConfig()
    relatives: RelativesConfig = RelativesConfig()
