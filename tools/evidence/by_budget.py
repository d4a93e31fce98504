"""What each part of the search gains with so many trials a task, and where ``tune`` has it on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from costlib.search.config import SearchConfig
from costlib.tuning.budget import for_budget
from tools.evidence.files import read_result
from tools.evidence.protocol import (
    CONFIDENCE,
    DIFFUSION,
    OF_A_BUNDLE,
    PARTS,
    PLAIN,
    changed,
    setting,
)
from tools.evidence.simulated import BUDGETS, PROOF, SCREEN
from tools.evidence.variants_summary import COLD

TRIALS = (1, 2, 4, 16, 64, 200)
"""Of a task."""

SITUATIONS = ("full", "cold")
"""With a bundle and without one, as races call their full searches."""

RACED_FOR = {trials: trials for trials in TRIALS} | {64: 48}
"""The trials of the ablation's races that stand for a budget, where nothing else does."""

LEAST = 0.02
"""A gain or a loss that counts: of the many intervals one in twenty leaves out 1 by chance."""

_ON = {"full": ("tasks", "networks"), "cold": ("tasks, cold",)}

_TASKS = 16
"""Of a run, where its budget is to be divided."""

Row = Mapping[str, Any]


class Gain(NamedTuple):
    """Throughput with a part, relative to that without it.

    Attributes
    ----------
    ratio, low, high
        The geometric mean, and what holds it with 95 % confidence.
    trials
        A task had, when this was taken.
    cases
        Races or searches.
    is_simulated
        Whether it was on a surrogate device.
    """

    ratio: float
    low: float
    high: float
    trials: int
    cases: int
    is_simulated: bool

    @property
    def pays(self) -> bool:
        """Whether it gains more than chance explains, and enough."""
        return self.low > 1 and self.ratio >= 1 + LEAST

    @property
    def costs(self) -> bool:
        """Whether it costs more than chance explains, and enough."""
        return self.high < 1 and self.ratio <= 1 - LEAST


Gains = Mapping[str, Mapping[int, Gain]]


def gains(situation: str) -> Gains:
    """Return the gain of each part after so many trials, where it was measured.

    Any race is taken before a surrogate, then what had just so many trials, then the most races.
    """
    found: dict[str, dict[int, list[Gain]]] = defaultdict(lambda: defaultdict(list))
    for part, trials, gain in (
        *_of_variants(situation),
        *_of_races(situation),
        *_of_surrogate(situation),
    ):
        found[part][trials].append(gain)
    return {
        part: {
            trials: min(some, key=partial(_rank, trials))
            for trials, some in sorted(by_trials.items())
        }
        for part, by_trials in found.items()
    }


def _rank(trials: int, gain: Gain) -> tuple[bool, bool, int]:
    return gain.is_simulated, gain.trials != trials, -gain.cases


def is_on(part: str, situation: str, trials: int) -> bool:
    """Whether ``tune`` has a part on with so many trials a task."""
    if situation == COLD and part in OF_A_BUNDLE:
        return False
    config = _tuned(trials)
    fields = (PARTS | DIFFUSION).get(part, {})
    return any(setting(config, field) != setting(PLAIN, field) for field in fields)


def batch(trials: int) -> int:
    """Return how many programs ``tune`` measures at a time with so many trials a task."""
    return _tuned(trials).planning.batch


def _tuned(trials: int) -> SearchConfig:
    return for_budget(SearchConfig(), trials * _TASKS, _TASKS)


def _part_of(text: str, situation: str) -> tuple[str, bool] | None:
    """Return the part that a setting alone switches, and whether it is on then."""
    change = text.removeprefix(f"{COLD},")
    if (situation == COLD) != (change != text) or change.count("=") != 1:
        return None
    field, value = change.split("=")
    for part, fields in (PARTS | DIFFUSION).items():
        if list(fields) == [field]:
            config = changed(SearchConfig(), {field: value})
            return part, setting(config, field) != setting(PLAIN, field)
    return None


def _switched(ratio: float, low: float, high: float, is_with: bool) -> tuple[float, float, float]:
    return (ratio, low, high) if is_with else (1 / ratio, 1 / high, 1 / low)


def _of_variants(situation: str) -> Iterator[tuple[str, int, Gain]]:
    """Yield what races at invented tasks say."""
    for text, row in read_result("variants").items():
        if (known := _part_of(text, situation)) is None:
            continue
        for trials in TRIALS:
            if (one := row.get(str(trials))) is not None:
                reach = one["error"] * student.ppf((1 + CONFIDENCE) / 2, one["tasks"] - 1)
                low, high = one["mean"] * np.exp([-reach, reach])
                bounds = _switched(one["mean"], float(low), float(high), known[1])
                yield known[0], trials, Gain(*bounds, trials, one["tasks"], is_simulated=False)


def _of_races(situation: str) -> Iterator[tuple[str, int, Gain]]:
    """Yield what the ablation says of the full search."""
    for row in read_result("search")["ablation"]:
        base, _, change = row["version"].partition(" ")
        part = change[2:]
        if row["on"] not in _ON[situation] or base != situation or part not in PARTS | DIFFUSION:
            continue
        for trials, raced_for in RACED_FOR.items():
            if (one := row["by_trials"].get(str(raced_for))) is not None:
                low, high = one["interval"]
                gain = Gain(one["gain"], low, high, raced_for, one["races"], is_simulated=False)
                yield part, trials, gain


def _of_surrogate(situation: str) -> Iterator[tuple[str, int, Gain]]:
    """Yield what searches on a surrogate device say."""
    result = read_result("surrogate")
    for of in (PROOF, SCREEN, BUDGETS):
        for trials, settings in result.get(of, {}).get("settings", {}).items():
            for text, one in settings.items():
                known = _of_proof(text, situation) if of == PROOF else _part_of(text, situation)
                if known is not None and "low" in one and int(trials) in TRIALS:
                    bounds = _switched(one["ratio"], one["low"], one["high"], known[1])
                    gain = Gain(*bounds, int(trials), one["cases"], is_simulated=True)
                    yield known[0], int(trials), gain


def _of_proof(text: str, situation: str) -> tuple[str, bool] | None:
    base, sign, part = (*text.split(" ", 2), "", "")[:3]
    return (part, sign == "+") if base == situation == "full" and sign else None


def ranked(found: Gains, trials: int) -> dict[str, Gain]:
    """Return the parts that were measured with so many trials, the most useful first."""
    known = {part: by_trials[trials] for part, by_trials in found.items() if trials in by_trials}
    return dict(sorted(known.items(), key=lambda entry: -math.log(entry[1].ratio)))
