"""How searches are raced and models judged: what benchmarks and pages agree on."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from costlib.errors import InputError
from costlib.search.config import SearchConfig

QUICK = bool(os.environ.get("COSTLIB_QUICK"))
"""Whether a few trials are enough, to see that everything works; ``make evidence QUICK=1``."""

HEAVY_TRIALS = 24 if QUICK else 200
"""Of each side, at a single task."""
LONG_TRIALS = 96 if QUICK else 1000
"""Of stock, in its long races."""
NETWORK_TRIALS = 6 if QUICK else 64
"""Of each side, for each task of a whole network on the average."""
ABLATION_TRIALS = 8 if QUICK else 48
"""Of each version, at a single task."""
DIFFUSION_TRIALS = 3 if QUICK else 16
"""Of each version, for each task of a whole network on the average."""
MEMORY_TRIALS = 2 if QUICK else 16
"""Of each side, for each task of a network that is tuned after others on the average."""

EARLY_TRIALS = 4 if QUICK else 16
"""Of costlib, for each task: soon enough to be worth something."""

STOCK_BATCH = 64
"""MetaSchedule's default number of programs between two rounds of search."""

PICKED = 4 if QUICK else 32
"""Programs of a task that are picked without a search, and measured."""
WRITTEN = 64 if QUICK else 1024
"""Programs of a task that these are picked from, or as many written as random ones."""
BESIDE_WRITTEN_TRIALS = 64
"""Of stock, in the races with written programs."""
NETWORK_GENERATED = 4 if QUICK else 16
"""Generated programs of each task of a whole network."""

CONFIDENCE = 0.95
"""Of the intervals around a model's figures."""


def changed(config: SearchConfig, settings: Mapping[str, Any]) -> SearchConfig:
    """Return a search with other settings, each in the part of the search that has it.

    Raises
    ------
    InputError
        No part has such a setting, or the value is none that it takes.
    """
    sections: dict[str, dict[str, Any]] = {}
    for name, value in settings.items():
        having = [
            section
            for section in SearchConfig.model_fields
            if name in type(getattr(config, section)).model_fields
        ]
        if not having:
            raise InputError(f"the search has no setting called '{name}'")
        sections.setdefault(having[0], {})[name] = value
    update = {}
    for section, values in sections.items():
        present = getattr(config, section)
        try:
            update[section] = type(present).model_validate(present.model_dump() | values)
        except ValidationError as error:
            raise InputError(f"{values}: {error.errors()[0]['msg']}") from None
    return config.model_copy(update=update)


def setting(config: SearchConfig, name: str) -> Any:
    """Return a setting of whichever part of the search has it; ``None`` if none has."""
    sections = (getattr(config, section) for section in SearchConfig.model_fields)
    return next((getattr(one, name) for one in sections if hasattr(one, name)), None)


_OFF: dict[str, Any] = {
    "growth": 0,
    "ahead": False,
    "early_survivors": 2,
    "crossover": 0,
    "draft": False,
    "directions": False,
    "sketch_selection": False,
    "diffusion": False,
    "bank": False,
    "correction": False,
    "generator": False,
    "looks": 1,
    "niches": 0,
}
PLAIN = changed(SearchConfig(), _OFF)
FULL = changed(SearchConfig(), {"crossover": 0.2, "directions": True})
"""The default, and what the ablation has switched off since."""
COLD = changed(SearchConfig(), {"crossover": 0.2})
"""The full search without a bundle."""
PARTS: dict[str, dict[str, Any]] = {
    "crossover": {"crossover": 0.2},
    "draft": {"draft": True},
    "directions": {"directions": True},
    "sketch selection": {"sketch_selection": True},
    "bank": {"bank": True},
    "correction": {"correction": True},
    "generator": {"generator": True},
    "looks": {"looks": 3},
    "niches": {"niches": 0.5},
    "early survivors": {"early_survivors": 8},
    "growing batches": {"growth": 0.25},
    "proposing ahead": {"ahead": True},
}
OF_A_BUNDLE = ("directions", "bank", "generator")
"""Parts that a search without a bundle does not have."""
DIFFUSION: dict[str, dict[str, Any]] = {"diffusion": {"diffusion": True}}


def is_on_by_default(part: str) -> bool:
    """Whether the search as it comes has a part; one that is gone is off."""
    fields = (PARTS | DIFFUSION).get(part, {})
    return any(setting(SearchConfig(), field) != setting(PLAIN, field) for field in fields)
