"""What to switch on with so many trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tools.evidence.by_budget import (
    LEAST,
    RACED_FOR,
    TRIALS,
    Gain,
    Gains,
    batch,
    gains,
    is_on,
    ranked,
)
from tools.evidence.markdown import in_words, percent, table, with_range
from tools.evidence.origins import origin
from tools.evidence.pages.page import Page
from tools.evidence.part_names import titled
from tools.evidence.protocol import CONFIDENCE
from tools.evidence.provenance import measured, provenance
from tools.evidence.variants_summary import COLD

_SIMULATED = "†"

_TITLES = {"full": "With a bundle", COLD: "Without a bundle"}

_ORIGINS = {
    "full": (
        ("ablation", "with a bundle", "diffusion"),
        ("variants",),
        ("surrogate", "versions that were raced, simulated"),
    ),
    COLD: (
        ("ablation", "without a bundle"),
        ("variants",),
        ("surrogate", "settings that were screened", "networks of the zoo with few trials"),
    ),
}


def parts() -> list[str]:
    """Return the page."""
    found = {situation: gains(situation) for situation in _TITLES}
    return [
        "`tune` knows how many trials there are for each task, and goes about them accordingly. "
        "This page says what pays with how many, and what `tune` does.",
        "## In short",
        *dict.fromkeys(line for situation in _TITLES for line in _origins(situation)),
        f"A part *pays* or *costs* where it gains or loses {100 * LEAST:.0f} % or more and the "
        "interval leaves out 1. Of the other parts neither can be told from chance.",
        _short(found),
        *_diffusion(found[COLD].get("diffusion", {})),
        *(
            line
            for situation, title in _TITLES.items()
            for line in (f"## {title}", *_origins(situation), *_gains(found[situation], situation))
        ),
        *measured("ablation", "variants", "surrogate"),
    ]


def _origins(situation: str) -> list[str]:
    return [origin(*names) for names in _ORIGINS[situation]]


def _short(found: dict[str, Gains]) -> str:
    return table(
        ["trials a task", "", "pays", "costs", "`tune` measures at a time"],
        [
            [
                trials,
                title.lower(),
                _named(ranked(found[situation], trials), lambda gain: gain.pays),
                _named(ranked(found[situation], trials), lambda gain: gain.costs),
                batch(trials),
            ]
            for trials in TRIALS
            for situation, title in _TITLES.items()
        ],
    )


def _diffusion(by_trials: Mapping[int, Gain]) -> list[str]:
    goal = provenance().goals.diffusion_gain
    few = {trials: gain.ratio for trials, gain in by_trials.items() if gain.is_simulated}
    if not few:
        return []
    met = "met" if min(few.values()) >= goal else "**missed**"
    gained = in_words([f"{ratio:.2f} with {_trials(trials)}" for trials, ratio in few.items()])
    return [
        f"Diffusion without a bundle gains {gained} a task; the goal, at least {goal}, is {met}. "
        "On a surrogate luck counts for more than in truth, which helps programs drawn at random."
    ]


def _named(found: dict[str, Gain], chosen: Callable[[Gain], bool]) -> str:
    return in_words([titled(part) for part, gain in found.items() if chosen(gain)])


def _gains(found: Gains, situation: str) -> list[str]:
    head = ["part", *map(_trials, TRIALS), "in `tune`"]
    rows = [
        [
            titled(part),
            *(_cell(by_trials.get(trials)) for trials in TRIALS),
            _by_default(is_on(part, situation, trials) for trials in TRIALS),
        ]
        for part, by_trials in sorted(found.items(), key=lambda entry: _mean(entry[1]))
    ]
    return [
        "Throughput with a part, relative to that without it, after so many trials a task, with "
        f"the interval that holds it with {percent(CONFIDENCE)} confidence. {_SIMULATED}: on a "
        "[surrogate device](surrogate.md), else in [real races](ablation.md). "
        + (
            "On the surrogate, 1 to 4 trials are the first of longer searches of single tasks. "
            if situation != COLD
            else ""
        )
        + "".join(
            f"Where no race had {trials} trials, it is the gain after {raced_for}. "
            for trials, raced_for in RACED_FOR.items()
            if raced_for != trials
        )
        + "Nothing is shown where nothing was measured.",
        table(head, rows),
    ]


def _trials(count: int) -> str:
    return f"{count} trial{'s' if count > 1 else ''}"


def _mean(by_trials: Mapping[int, Gain]) -> float:
    return -sum(gain.ratio for gain in by_trials.values()) / len(by_trials)


def _cell(gain: Gain | None) -> str:
    if gain is None:
        return ""
    return with_range(gain.ratio, gain.low, gain.high) + (_SIMULATED if gain.is_simulated else "")


def _by_default(on: Iterable[bool]) -> str:
    """Say with how many trials a part is on."""
    flags = dict(zip(TRIALS, on, strict=True))
    if len(set(flags.values())) == 1:
        return "on" if flags[TRIALS[0]] else "off"
    return "on with " + in_words([str(trials) for trials, flag in flags.items() if flag])


PAGE = Page(
    "budgets", "What to switch on with how many trials", parts, ("search", "variants", "surrogate")
)
