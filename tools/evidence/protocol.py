"""How searches are raced and models judged: what benchmarks and pages agree on."""

from __future__ import annotations

from typing import Any

from costlib.search.config import SearchConfig

HEAVY_TRIALS = 200
"""Of each side, at a single task."""
LONG_TRIALS = 1000
"""Of stock, in its long races."""
NETWORK_TRIALS = 64
"""Of each side, for each task of a whole network on the average."""
ABLATION_TRIALS = 48
"""Of each version, at a single task."""
DIFFUSION_TRIALS = 16
"""Of each version, for each task of a whole network on the average."""

EARLY_TRIALS = 16
"""Of costlib, for each task: soon enough to be worth something."""

STOCK_BATCH = 64
"""MetaSchedule's default number of programs between two rounds of search."""

PICKED = 32
"""Programs of a task that are picked without a search, and measured."""
WRITTEN = 1024
"""Programs of a task that these are picked from, or as many written as random ones."""
BESIDE_WRITTEN_TRIALS = 64
"""Of stock, in the races with written programs."""
NETWORK_GENERATED = 16
"""Generated programs of each task of a whole network."""

CONFIDENCE = 0.95
"""Of the intervals around a model's figures."""

PLAIN = SearchConfig(
    growth=0,
    ahead=False,
    early_survivors=2,
    crossover=0,
    diversity=0,
    draft=False,
    directions=False,
    sketch_selection=False,
    diffusion=False,
    bank=False,
    correction=False,
    generator=False,
    looks=1,
    niches=0,
)
FULL = SearchConfig(crossover=0.2, directions=True)
"""The default, and what the ablation has switched off since."""
COLD = SearchConfig(crossover=0.2, diversity=0.5)
"""The full search without a bundle, as it was when its parts were first raced."""
PARTS: dict[str, dict[str, Any]] = {
    "crossover": {"crossover": 0.2},
    "diversity": {"diversity": 0.2},
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
    """Whether the search as it comes has a part."""
    default = SearchConfig()
    fields = (PARTS | DIFFUSION)[part]
    return any(getattr(default, field) != getattr(PLAIN, field) for field in fields)
