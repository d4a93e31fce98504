"""Drop-ins for people's own MetaSchedule scripts; each works alone, too.

- :class:`Builder` and :class:`Runner`: build in a fork server, time between canaries;
- :class:`SearchStrategy` and :class:`GradientScheduler`: costlib's search over all tasks;
- :class:`PretrainedCostModel`: a bundle's model for MetaSchedule's own search.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from costlib.metaschedule.builder import Builder as Builder
    from costlib.metaschedule.cost_model import PretrainedCostModel as PretrainedCostModel
    from costlib.metaschedule.runner import Runner as Runner
    from costlib.metaschedule.search_strategy import SearchStrategy as SearchStrategy
    from costlib.metaschedule.task_scheduler import GradientScheduler as GradientScheduler

_MODULES = {
    "Builder": "builder",
    "GradientScheduler": "task_scheduler",
    "PretrainedCostModel": "cost_model",
    "Runner": "runner",
    "SearchStrategy": "search_strategy",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
