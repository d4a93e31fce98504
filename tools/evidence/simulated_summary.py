"""What searches on a surrogate device come to, and how far real races agree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from costlib.arrays import Floats
from tools.evidence.means import geometric_mean, interval
from tools.evidence.protocol import CONFIDENCE
from tools.evidence.races import Race
from tools.evidence.simulated import NETWORKS, PROOF, SimulatedSearch

COUNTS = (1, 2, 4, 8, 16, 32, 48)
"""Trials a task after which settings are compared."""

_FEWEST_TRIALS = 8
"""After which the order of settings is compared with that of races: before, too many are alike."""

RACED_AS = {PROOF: "ablation", NETWORKS: "diffusion"}
"""The kind of the real races of a part's settings."""

FULL, PRESENT, COLD = "full", "present", "cold"

_DRAWS = 1000
_HALVES = 200

Ratios = Mapping[str, Mapping[tuple[str, int], float]]
"""Logarithm of the throughput of each setting relative to its base's, by task and seed."""


def base_of(part: str, setting: str) -> str:
    """Return the setting that another one is compared with."""
    if part in RACED_AS:
        return FULL
    return COLD if setting.startswith(f"{COLD},") else PRESENT


def summarise_simulated(
    searches: Sequence[SimulatedSearch], races: Sequence[Race]
) -> dict[str, Any]:
    """Return by part, and by trials a task, what each setting gains and how far races agree.

    ``ratio``: throughput relative to that of the base, the geometric mean over tasks of those over
    their seeds; ``low`` and ``high`` enclose it with 95 % confidence, by Student's distribution of
    the tasks' means, as tasks drawn anew say too little of a few; they are missing where there are
    fewer than three.
    """
    parts: dict[str, list[SimulatedSearch]] = defaultdict(list)
    for search in searches:
        parts[search.part].append(search)
    return {part: _of_part(part, found, races) for part, found in parts.items()}


def _of_part(
    part: str, searches: Sequence[SimulatedSearch], races: Sequence[Race]
) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "hardware": searches[0].hardware,
        "fit": searches[0].fit,
        "searches": len(searches),
        "tasks": len({search.what for search in searches}),
        "seconds": round(float(np.median([search.seconds for search in searches])), 1),
        "settings": {},
        "agreement": {},
    }
    raced = [race for race in races if race.kind == RACED_AS.get(part)]
    for count, found in _by_count(part, searches):
        ratios = _relative(_of_searches(found, count), lambda name: base_of(part, name))
        if ratios:
            summary["settings"][str(count)] = {n: _gain(ratios[n]) for n in sorted(ratios)}
        real = _relative(_of_races(raced, count), lambda _: FULL)
        tasks = {search.what for search in searches}
        shared = sorted(
            n for n in ratios.keys() & real.keys() if {w for w, _ in ratios[n]} == tasks
        )
        if len(shared) >= _FEWEST_RANKED and count >= _FEWEST_TRIALS:
            summary["agreement"][str(count)] = _agreement(
                {name: ratios[name] for name in shared}, {name: real[name] for name in shared}
            )
    return summary


def _by_count(
    part: str, searches: Sequence[SimulatedSearch]
) -> Iterator[tuple[int, Sequence[SimulatedSearch]]]:
    """Yield trials a task, and the searches to be compared after so many.

    Those that repeat no races are compared at their ends: each goes about its budget.
    """
    if part in RACED_AS:
        yield from ((count, searches) for count in COUNTS)
        return
    for trials in sorted({search.trials for search in searches}):
        yield trials, [search for search in searches if search.trials == trials]


_Best = Mapping[tuple[str, int], Mapping[str, float]]


def _of_searches(searches: Iterable[SimulatedSearch], count: int) -> _Best:
    best: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for one in searches:
        place = count * one.tasks - 1
        if place < len(one.curve_s) and np.isfinite(one.curve_s[place]):
            best[one.what, one.seed][one.setting] = one.curve_s[place]
    return best


def _of_races(races: Iterable[Race], count: int) -> _Best:
    best: dict[tuple[str, int], dict[str, float]] = defaultdict(dict)
    for race in races:
        for name in race.sides:
            curve = race.curve(name)
            place = min(count * len(race.tasks), len(curve)) - 1
            if np.isfinite(curve[place]):
                best[race.what, race.seed or 0][name] = float(curve[place])
    return best


def _relative(best: _Best, base: Callable[[str], str]) -> Ratios:
    ratios: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for case, of_settings in best.items():
        for name, seconds in of_settings.items():
            other = of_settings.get(base(name))
            if other is not None and name != base(name):
                ratios[name][case] = float(np.log(other / seconds))
    return ratios


def _gain(of_cases: Mapping[tuple[str, int], float]) -> dict[str, Any]:
    of_tasks: dict[str, list[float]] = defaultdict(list)
    for (task, _), gained in of_cases.items():
        of_tasks[task].append(gained)
    ratios = np.exp([np.mean(gained) for gained in of_tasks.values()]).tolist()
    gain: dict[str, Any] = {"ratio": geometric_mean(ratios), "cases": len(of_cases)}
    if len(ratios) >= _FEWEST_TASKS:
        gain["low"], gain["high"] = interval(ratios)
    return gain


def _agreement(ratios: Ratios, real: Ratios) -> dict[str, Any]:
    """Return Spearman's correlation of both orders, the base among them.

    ``low`` and ``high`` enclose it, tasks and their seeds drawn anew on both sides. ``halves`` is
    the correlation of one half of the races with the other: what chance leaves to be agreed with.
    ``within``: that of the versions of one loop, which are closer together.
    """
    rng = np.random.default_rng(0)
    names = [FULL, *ratios]
    here, there = (_with_base(_means(side)) for side in (ratios, real))
    drawn = (_with_base(_drawn_means(side, rng)) for side in (ratios, real))
    low, high = np.nanpercentile(_correlations(*drawn), _TAILS)
    cases = sorted(set.intersection(*(set(of_cases) for of_cases in real.values())))
    table = np.array([[of_cases[case] for case in cases] for of_cases in real.values()])
    orders = [rng.permutation(len(cases)) for _ in range(_HALVES)]
    some, others = (
        _with_base(np.stack([table[:, order[half::2]].mean(1) for order in orders], axis=1))
        for half in range(2)
    )
    loops = np.array([name.partition(" ")[0] for name in names])
    return {
        "spearman": _rounded(_correlations(here, there)),
        "low": round(float(low), 3),
        "high": round(float(high), 3),
        "halves": _rounded(_correlations(some, others)),
        "within": {
            str(loop): _rounded(_correlations(here[loops == loop], there[loops == loop]))
            for loop in dict.fromkeys(loops.tolist())
            if (loops == loop).sum() > _FEWEST_RANKED
        },
        "settings": len(names),
        "races": len(cases),
        "real": {name: _gain(real[name]) for name in real},
    }


_TAILS = [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)]

_FEWEST_RANKED = 2

_FEWEST_TASKS = 3
"""Of a setting's searches or races, for an interval."""


def _means(ratios: Ratios) -> Floats:
    return np.array([[np.mean(list(of_cases.values()))] for of_cases in ratios.values()])


def _with_base(gains: Floats) -> Floats:
    """Put the base, which gains nothing, before the rows of the other settings."""
    return np.vstack([np.zeros((1, gains.shape[1])), gains])


def _correlations(some: Floats, others: Floats) -> Floats:
    """Return Spearman's correlation of `n x d` gains, column by column; float64 `d`."""
    one, other = (rankdata(gains, axis=0) for gains in (some, others))
    one, other = one - one.mean(0), other - other.mean(0)
    spread = np.sqrt((one**2).sum(0) * (other**2).sum(0))
    return np.asarray((one * other).sum(0) / np.maximum(spread, 1e-12))


def _rounded(correlations: Floats) -> float:
    return round(float(np.mean(correlations)), 3)


def _drawn_means(ratios: Ratios, rng: np.random.Generator) -> Floats:
    """Return each setting's mean for many draws of tasks, and of the seeds of each.

    All settings see the same draws; float64 `settings x draws`, NaN where one has none of them.
    """
    cases = sorted(set().union(*(of_cases.keys() for of_cases in ratios.values())))
    table = np.array([[of.get(case, np.nan) for case in cases] for of in ratios.values()])
    seeds = defaultdict(list)
    for place, (task, _) in enumerate(cases):
        seeds[task].append(place)
    sizes = np.array([len(places) for places in seeds.values()])
    seats = np.array([np.resize(places, sizes.max()) for places in seeds.values()])
    chosen = rng.integers(len(seats), size=(_DRAWS, len(seats)))
    size = sizes[chosen][..., None]
    picked = (rng.random((*chosen.shape, sizes.max())) * size).astype(int)
    counts = np.zeros((_DRAWS, len(cases)))
    draws = np.arange(_DRAWS)[:, None, None]
    np.add.at(counts, (draws, seats[chosen[..., None], picked]), np.arange(sizes.max()) < size)
    known = np.isfinite(table)
    sums, numbers = (side @ counts.T for side in (np.where(known, table, 0), known.astype(float)))
    return np.where(numbers > 0, sums / np.maximum(numbers, 1), np.nan)
