"""What programs that were picked without a search come to, relative to stock's search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from costlib.arrays import Floats
from tools.evidence.protocol import BESIDE_WRITTEN_TRIALS, NETWORK_GENERATED
from tools.evidence.races import Race, Side, curve

COUNTS = (1, 4, 16, 32)
SEARCH_COUNTS = (1, 2, 4, 8, 16, 32)
WAYS = ("generate", "written", "sampled", "search", "search without")


def summarise_generate(races: Sequence[Race], searches: Sequence[Race]) -> dict[str, Any]:
    """Return throughputs relative to stock's, at its ends of 64, 200 and 1,000 trials.

    Parameters
    ----------
    races
        Of ``tools.benchmarks.generate``.
    searches
        Of ``tools.benchmarks.search``, where stock went on for longer and whole networks were
        raced.
    """
    heavy = {(race.what, race.seed): race for race in searches if race.kind == "heavy"}
    rows = [_row(race, heavy.get((race.what, race.seed))) for race in races]
    long = [_long_row(race) for race in searches if race.kind == "long" and "written" in race.sides]
    networks = [race for race in searches if race.kind == "network" and "generate" in race.sides]
    return {
        "relative_to": "stock's throughput after so many trials: 64 of the same race; 200, that "
        "times what its recorded curves gain beyond; 1,000 of a race of their own (long, where "
        "'search' has 200 trials); 64 a task (networks); then by programs measured of a task",
        "cases": rows,
        "long": long,
        "networks": [_network_row(race) for race in networks],
        "pooled": {
            way: {
                **{trials: _pooled(rows, way, trials) for trials in ("64", "200")},
                "1000": _pooled(long, way, "1000"),
            }
            for way in WAYS
        },
        "generator_in_search": _with_and_without(races),
        "valid": round(
            sum(row["programs"]["passed"] for row in rows)
            / max(sum(row["programs"]["written"] for row in rows), 1),
            4,
        ),
    }


def _row(race: Race, longer: Race | None) -> dict[str, Any]:
    goals = {"64": float(race.curve("stock")[-1])}
    if longer is not None:
        # Not every race here has a second look at its leaders.
        first_looks = longer.sides["stock"].model_copy(update={"again": None})
        recorded = curve(first_looks, longer.weights)
        gained = float(recorded[-1] / recorded[BESIDE_WRITTEN_TRIALS - 1])
        goals["200"] = goals["64"] * gained
    return {
        "task": race.what,
        "seed": race.seed,
        "programs": race.details["programs"],
        "programs_per_s": {k: round(v, 1) for k, v in race.details["programs_per_s"].items()},
        **{
            side: {trials: _shares(goal, race.curve(side)) for trials, goal in goals.items()}
            for side in race.sides
        },
    }


def _long_row(race: Race) -> dict[str, Any]:
    """Return the figures of a race in which stock had 1,000 trials."""
    goal = float(race.curve("stock")[-1])
    ways = {way: way for way in ("generate", "written", "sampled")} | {"search": "costlib"}
    return {
        "task": race.tasks[0].name,
        "hardware": race.hardware,
        **{
            way: {"1000": _shares(goal, race.curve(side))}
            for way, side in ways.items()
            if side in race.sides
        },
    }


def _network_row(race: Race) -> dict[str, Any]:
    """Return what generated programs come to on a whole network."""
    goal, side = race.curve("stock")[-1], race.sides["generate"]
    return {
        "network": race.what,
        "seed": race.seed,
        "hardware": race.hardware,
        "generate": {
            str(count): round(float(goal / curve(_first(side, count), race.weights)[-1]), 4)
            for count in COUNTS
            if count <= NETWORK_GENERATED
        },
    }


def _with_and_without(races: Sequence[Race]) -> dict[str, dict[str, float]]:
    """Throughput of the search with the generator relative to the search without, by programs."""
    most = SEARCH_COUNTS[-1]
    sides = [(race.curve("search without"), race.curve("search")) for race in races]
    gains = np.array([np.log(without / with_it)[:most] for without, with_it in sides])
    return {
        str(count): {
            "throughput": round(float(np.exp(of.mean())), 4),
            "standard_error": round(float(of.std(ddof=1) / np.sqrt(len(of))), 4),
            "ahead": int((of > 0).sum()),
        }
        for count in SEARCH_COUNTS
        for of in [gains[:, count - 1]]
    }


def _first(side: Side, count: int) -> Side:
    """Return a side that ended with so many programs of each task."""
    seen = Counter[int]()
    kept: dict[int, int] = {}
    for number, (task, _, _) in enumerate(side.trials):
        seen[task] += 1
        if seen[task] <= count:
            kept[number] = len(kept)
    trials = tuple(side.trials[number] for number in kept)
    again = tuple((kept[number], s) for number, s in side.again or () if number in kept)
    return side.model_copy(update={"trials": trials, "again": again})


def _shares(goal: float, best: Floats) -> dict[str, float]:
    """Return the throughput relative to a goal, after so many programs."""
    return {str(k): round(float(goal / best[k - 1]), 4) for k in COUNTS if k <= len(best)}


def _pooled(rows: Sequence[Mapping[str, Any]], way: str, trials: str) -> dict[str, float]:
    """Return geometric means over the races."""
    pooled = {}
    for count in map(str, COUNTS):
        found = [row.get(way, {}).get(trials, {}) for row in rows]
        shares = [one[count] for one in found if count in one]
        if shares:
            pooled[count] = round(float(np.exp(np.mean(np.log(np.maximum(shares, 1e-6))))), 4)
    return pooled
