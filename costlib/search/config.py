"""Settings of costlib's search; every part of it can be switched off."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class SearchConfig(BaseModel):
    """How programs are proposed.

    Attributes
    ----------
    strategy
        A name in :data:`costlib.search.strategy.STRATEGIES`; what follows, but for ``batch``, is
        for ``"evolution"``.
    batch, growth
        Programs of a task that are measured between two rounds of search: so many, or this share of
        those that were measured before, if that is more; at most four times as many.
    ahead
        Propose a batch while the one before it is built.
    population, generations
        Vectors of decisions that evolve, and how often they are replaced.
    survivors, early_survivors
        So many candidates are lowered, and scored by the exact model, for each that is measured;
        and for each of a task's first 32, which have little else to go by.
    crossover
        Share of the children that have two parents. Off by default: it gained nothing that can be
        told from noise (``tools/results/search.json``, ``tools/results/variants.json``).
    epsilon
        Share of a batch that is drawn at random.
    niches
        Share of the rounds, while nothing better is found, that measure the best of other kinds of
        programs, those first that were measured least: a model that is wrong about one finds out.
    optimism
        How many of its standard deviations are added to a candidate's score, so that what little
        is known of is measured, too.
    diversity
        What a decision that no other program of the batch has made is worth, in standard
        deviations of the candidates' scores. Off by default: with and without a bundle it gains
        nothing that can be told from noise (``tools/results/search.json``).
    draft
        Let the bundle's model of schedules guide the evolution (without a bundle the run's own,
        once 32 programs of a task were measured); otherwise the exact model scores a random part of
        the population.
    directions
        Mutate in the direction that the bundle's classifier expects most of; otherwise with
        MetaSchedule's probabilities. Off by default: what a mutation brings on average says little
        where the best of hundreds is taken, and it gained nothing
        (``tools/results/search.json``).
    direction_temperature
        How much less likely a direction is with an expected speed-up that is lower by its factor
        e.
    sketch_selection
        Explore all sketches, then keep mostly to the best one; otherwise all alike, always.
    diffusion
        Start from the programs of look-alike tasks of the same run.
    bank
        Start from the bundle's prior bank, and from the memory of earlier runs.
    generator
        Let programs that the bundle's generator writes, if it has one, start the search and evolve.
        Off by default: after the first two programs it gains nothing
        (``tools/results/generate.json``).
    correction
        Correct the models by what the run measures.
    looks
        How often a task's best program is measured in all before it is believed to be that, if
        none of the moments was calm and no two measurements agree; each counts as a trial.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    strategy: str = "evolution"
    batch: int = Field(4, ge=1)
    growth: float = Field(0.25, ge=0)
    ahead: bool = True
    population: int = Field(512, ge=8)
    generations: int = Field(4, ge=0)
    survivors: int = Field(2, ge=1)
    early_survivors: int = Field(8, ge=1)
    crossover: float = Field(0.0, ge=0, le=1)
    epsilon: float = Field(0.1, ge=0, le=1)
    niches: float = Field(0.5, ge=0, le=1)
    optimism: float = Field(0.0, ge=0)
    diversity: float = Field(0.0, ge=0)
    draft: bool = True
    directions: bool = False
    direction_temperature: float = Field(0.2, gt=0)
    sketch_selection: bool = True
    diffusion: bool = True
    bank: bool = True
    generator: bool = False
    correction: bool = True
    looks: int = Field(3, ge=1)
