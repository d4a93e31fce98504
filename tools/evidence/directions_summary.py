"""What an oracle of directions gains, from parents with many children in each direction.

An oracle sees one half of a parent's children: of each direction the best of eight. It names the
direction with the best of all, and is judged by the best of that direction's other eight, which it
has not seen. So it is not paid for luck. Beside it stand the best of eight of the same other half,
drawn as MetaSchedule's mutators draw them or at random over the directions. Where a direction has
fewer than eight, the rest is drawn as MetaSchedule does. All is averaged over many halvings.

An oracle that has seen eight children of a direction may know less than a classifier that has seen
many parents. So one that has seen all children is there, too: no classifier gains more, but what it
gains is partly luck.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from costlib.arrays import Floats, Integers
from tools.evidence.families import Family
from tools.evidence.protocol import CONFIDENCE

EIGHT = 8
"""Children that each side may measure."""

TIE = 0.03
"""Directions whose best children differ by less are equally good."""

PAYS = 0.05
"""What a child gains at least that pays."""

FINE, LEVEL, TODAY = "fine", "level", "today"
"""How directions are told apart: by the levels between which a tile moves; by the level that it
moves to; or as the classifier does it, by spatial and reduction loops alone."""

_HALVINGS = 100
_DRAWS = 2000
_FEWEST = 3
"""Directions that a parent has at least, else there is nothing to name."""

ORACLE, ALL_KNOWN, ALWAYS, RANDOM = "oracle", "all_known", "always", "random"
"""What is compared with MetaSchedule's probabilities: the oracle; one that has seen all children;
always the direction that is the best on the average of other tasks; and any direction."""


class _Halved(NamedTuple):
    """A family's throughput in many halvings, logarithms relative to the parent's.

    Attributes
    ----------
    directions
        `d` names.
    seen, judged
        float64 `h x d`: the best of each direction's children, of the half that the oracle sees,
        and of the other half with as many stock children as are missing.
    own
        float64 `h x d`: as ``judged``, without children of other directions.
    stock, random
        float64 `h`: the best of eight of the other half.
    whole, whole_stock
        float64 `h x d` and `h`: as ``judged`` and ``stock``, of all children.
    """

    directions: tuple[str, ...]
    seen: Floats
    judged: Floats
    own: Floats
    stock: Floats
    random: Floats
    whole: Floats
    whole_stock: Floats


def summarise_directions(families: Sequence[Family]) -> dict[str, Any]:
    """Return by device, hardware and kind of directions what :func:`of_families` finds."""
    groups: dict[str, dict[str, list[Family]]] = defaultdict(lambda: defaultdict(list))
    for family in families:
        groups[family.device][family.hardware].append(family)
    return {
        device: {
            hardware: {
                kind: of_families([_told_apart(one, kind) for one in some])
                for kind in (FINE, LEVEL, TODAY)
            }
            for hardware, some in by_hardware.items()
        }
        for device, by_hardware in groups.items()
    }


def _told_apart(family: Family, kind: str) -> Family:
    """Return a family whose directions are of one of the three kinds."""
    children = [
        child.model_copy(update={"direction": _named(child.direction, kind)})
        for child in family.children
    ]
    return family.model_copy(update={"children": tuple(children)})


def _named(direction: str, kind: str) -> str:
    """Name a fine direction as one of a kind."""
    loops, *levels = direction.split(" ")
    if kind == FINE or not levels:
        return direction
    return loops if kind == TODAY else f"{loops} to {levels[-1]}"


def of_families(families: Sequence[Family]) -> dict[str, Any]:
    """Return what an oracle gains, how often it is right, and what each direction is worth.

    ``gain`` holds, for each who names directions, the throughput relative to that of MetaSchedule's
    probabilities: ``ratio`` with the interval that holds it (tasks drawn anew); ``kept_ratio`` is
    the same where a parent is kept if no child is faster, as in a search. ``right``: how often the
    direction that the oracle names is the best in the other half; ``tied``: or within 3 % of the
    best; ``by_chance`` and ``tied_by_chance``: the same of a direction named at random,
    ``tied_always`` of the direction that is the best one on other tasks.
    """
    rng = np.random.default_rng(0)
    families = [family for family in families if len(_directions(family)) >= _FEWEST]
    if not families:
        return {}
    halved = [_halved(family, rng) for family in families]
    tasks = [family.workload_id for family in families]
    always = _always(halved, tasks)
    named = [np.argmax(one.seen, 1) for one in halved]
    right = _rights(halved, named)
    by_chance = [
        {"right": 1 / len(one.directions), "tied": float(_tied(one).mean())} for one in halved
    ]
    constant = _rights(halved, [np.full(_HALVINGS, place) for place in always])
    children = [child for family in families for child in family.children]
    best = [int(np.argmax(one.whole.mean(0))) for one in halved]
    stock, whole_stock = [one.stock for one in halved], [one.whole_stock for one in halved]
    sides = {
        ORACLE: ([_taken(o.judged, n) for o, n in zip(halved, named, strict=True)], stock),
        ALL_KNOWN: ([o.whole[:, b] for o, b in zip(halved, best, strict=True)], whole_stock),
        ALWAYS: ([o.judged[:, a] for o, a in zip(halved, always, strict=True)], stock),
        RANDOM: ([one.random for one in halved], stock),
    }
    return {
        "parents": len(families),
        "tasks": len(set(tasks)),
        "children": len(children),
        "ran": sum(child.latency_s is not None for child in children),
        "directions": round(float(np.mean([len(one.directions) for one in halved])), 2),
        "parent_of_best": round(float(np.exp(np.mean([-_best(f) for f in families]))), 4),
        "better": round(float(np.mean([_best(family) > 0 for family in families])), 4),
        "gain": {name: _gains(*pair, tasks) for name, pair in sides.items()},
        "right": _mean(one["right"] for one in right),
        "tied": _mean(one["tied"] for one in right),
        "by_chance": _mean(one["right"] for one in by_chance),
        "tied_by_chance": _mean(one["tied"] for one in by_chance),
        "tied_always": _mean(one["tied"] for one in constant),
        "by_direction": _by_direction(families, halved, named),
    }


def _directions(family: Family) -> tuple[str, ...]:
    """Return the directions with two children that ran, at least."""
    counts = Counter(c.direction for c in family.children if c.latency_s is not None)
    return tuple(sorted(name for name, count in counts.items() if count > 1))


def _best(family: Family) -> float:
    """Return the logarithm of what the best of all children gains; negative if none does."""
    known = [child.latency_s for child in family.children if child.latency_s is not None]
    return float(np.log(family.parent_s / min(known)))


def _halved(family: Family, rng: np.random.Generator) -> _Halved:
    directions = _directions(family)
    known = [c for c in family.children if c.latency_s is not None and c.direction in directions]
    gains = np.log(family.parent_s / np.array([c.latency_s for c in known], "float64"))
    number = np.array([directions.index(child.direction) for child in known])
    chances = np.array([child.chance for child in known])
    sizes = np.bincount(number)
    halves = [_halving(gains, number, chances, sizes, rng) for _ in range(_HALVINGS)]
    return _Halved(directions, *(np.array(part) for part in zip(*halves, strict=True)))


def _halving(
    gains: Floats,
    number: Integers,
    chances: Floats,
    sizes: Integers,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, Floats, float, float, Floats, float]:
    count = len(sizes)
    order = rng.permutation(len(number))
    place = np.empty(len(number), "int64")
    for direction in range(count):
        some = order[number[order] == direction]
        place[some] = np.arange(len(some))
    border = (sizes + rng.integers(2, size=count)) // 2
    first, second = (np.flatnonzero(half) for half in _sides(place, border[number]))
    seen = _best_of_each(gains, number, first, count)
    own = _best_of_each(gains, number, second, count)
    drawn = _drawn(second, chances[second], rng)
    judged = _filled_up(own, gains, number, drawn)
    even = _drawn(second, 1 / np.bincount(number[second], minlength=count)[number[second]], rng)
    everyone = _drawn(np.arange(len(number)), chances, rng)
    eight = _best_of_each(gains, number, np.flatnonzero(place < EIGHT), count)
    whole = _filled_up(eight, gains, number, everyone)
    return (
        *(seen, judged, own, gains[drawn[:EIGHT]].max(), gains[even[:EIGHT]].max()),
        *(whole, gains[everyone[:EIGHT]].max()),
    )


def _filled_up(own: Floats, gains: Floats, number: Integers, drawn: Integers) -> Floats:
    """Return the best of each direction's own children and of the stock ones that fill it up."""
    return np.array(
        [
            max(best, gains[_rest(drawn, number, d)].max(initial=-np.inf))
            for d, best in enumerate(own)
        ]
    )


def _sides(place: Integers, border: Integers) -> tuple[Any, Any]:
    """Return which are in the first half, and which in the second; eight of each at most."""
    return (place < border) & (place < EIGHT), (place >= border) & (place < border + EIGHT)


def _best_of_each(gains: Floats, number: Integers, some: Integers, count: int) -> Floats:
    best = np.full(count, -np.inf)
    np.maximum.at(best, number[some], gains[some])
    return best


def _drawn(some: Integers, weights: Floats, rng: np.random.Generator) -> Integers:
    """Put children in the order in which they are drawn, none of them twice."""
    return np.asarray(some[np.argsort(rng.exponential(size=len(some)) / weights)])


def _rest(drawn: Integers, number: Integers, direction: int) -> Integers:
    """Return the stock children that fill up those of a direction to eight."""
    is_own = number[drawn] == direction
    return np.asarray(drawn[~is_own][: max(0, EIGHT - int(is_own.sum()))])


def _always(halved: Sequence[_Halved], tasks: Sequence[str]) -> list[int]:
    """Return for each parent its direction that gains most at the parents of other tasks."""
    found = []
    for one, task in zip(halved, tasks, strict=True):
        totals: dict[str, list[float]] = defaultdict(list)
        for other, of_task in zip(halved, tasks, strict=True):
            if of_task != task:
                gains = (other.judged - other.stock[:, None]).mean(0).tolist()
                for name, gain in zip(other.directions, gains, strict=True):
                    totals[name].append(gain)
        means = [float(np.mean(totals[n])) if totals[n] else -np.inf for n in one.directions]
        found.append(int(np.argmax(means)))
    return found


def _taken(table: Floats, places: Integers) -> Floats:
    return np.asarray(table[np.arange(len(table)), places])


def _tied(one: _Halved) -> Any:
    """Return which directions are within the tie of the best, in the half that judges."""
    return one.own >= one.own.max(1, keepdims=True) - np.log1p(TIE)


def _rights(halved: Sequence[_Halved], named: Sequence[Integers]) -> list[dict[str, float]]:
    return [
        {
            "right": float((np.argmax(one.own, 1) == places).mean()),
            "tied": float(_taken(_tied(one), places).mean()),
        }
        for one, places in zip(halved, named, strict=True)
    ]


def _gains(
    named: Sequence[Floats], stock: Sequence[Floats], tasks: Sequence[str]
) -> dict[str, float]:
    plain = [float((one - other).mean()) for one, other in zip(named, stock, strict=True)]
    kept = [
        float((np.maximum(one, 0) - np.maximum(other, 0)).mean())
        for one, other in zip(named, stock, strict=True)
    ]
    return {
        **_interval(plain, tasks, ""),
        **_interval(kept, tasks, "kept_"),
    }


def _interval(values: Sequence[float], tasks: Sequence[str], prefix: str) -> dict[str, float]:
    """Return the mean as a ratio, and what encloses it, tasks drawn anew."""
    _, numbers = np.unique(tasks, return_inverse=True)
    sums, counts = np.bincount(numbers, values), np.bincount(numbers)
    rng = np.random.default_rng(0)
    drawn = rng.integers(len(sums), size=(_DRAWS, len(sums)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.exp(np.percentile(means, [50 * (1 - CONFIDENCE), 50 * (1 + CONFIDENCE)]))
    return {
        f"{prefix}ratio": round(float(np.exp(np.mean(values))), 4),
        f"{prefix}low": round(float(low), 4),
        f"{prefix}high": round(float(high), 4),
    }


def _mean(values: Any) -> float:
    return round(float(np.mean(list(values))), 4)


def _by_direction(
    families: Sequence[Family], halved: Sequence[_Halved], named: Sequence[Integers]
) -> dict[str, dict[str, float]]:
    """Return of each direction what it is worth.

    ``parents`` that have it, and how many ``children`` of it they have; the share of ``stock``
    changes that are in it; how often one of its children ``pays``; how often the oracle ``named``
    it; and the throughput of eight of its children relative to eight stock ones, its ``gain``.
    """
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    for family, one, places in zip(families, halved, named, strict=True):
        for place, name in enumerate(one.directions):
            born = [child for child in family.children if child.direction == name]
            ran = [child.latency_s for child in born if child.latency_s is not None]
            found[name].append(
                {
                    "children": len(ran),
                    "stock": sum(child.chance for child in born),
                    "pays": float(np.mean(np.array(ran) * (1 + PAYS) < family.parent_s)),
                    "named": float((places == place).mean()),
                    "gain": float((one.judged[:, place] - one.stock).mean()),
                }
            )
    return {name: {"parents": len(rows), **_averaged(rows)} for name, rows in sorted(found.items())}


def _averaged(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    means = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    means["gain"] = float(np.exp(means["gain"]))
    return {name: round(mean, 4) for name, mean in means.items()}
