"""What the parts of the search gain by budget, and that ``tune`` agrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tools.evidence import by_budget
from tools.evidence.by_budget import LEAST, SITUATIONS, TRIALS, Gain, gains, is_on, ranked

RESULTS: dict[str, Any] = {
    "variants": {
        "early_survivors=2": {"16": {"mean": 0.8, "error": 0.01, "tasks": 9}, "seconds": 1.0},
        "cold,directions=1": {"64": {"mean": 1.1, "error": 0.2, "tasks": 9}},
        "survivors=4": {"16": {"mean": 2.0, "error": 0.01, "tasks": 9}},
    },
    "search": {
        "ablation": [
            {
                "version": f"{base} - early survivors",
                "on": on,
                "by_trials": {
                    "16": {"gain": gain, "interval": [gain - 0.1, gain + 0.1], "races": 20},
                    "48": {"gain": 0.5, "interval": [0.4, 0.6], "races": 20},
                },
            }
            for base, on, gain in (("full", "tasks", 1.5), ("plain", "tasks", 3.0))
        ]
    },
    "surrogate": {
        "proof": {
            "settings": {
                str(trials): {"full - early survivors": {"ratio": 0.5, "low": 0.4, "high": 0.8}}
                | {"plain + early survivors": {"ratio": 9.0, "low": 8.0, "high": 10.0}}
                for trials in (1, 8, 16)
            }
        },
        "budgets": {
            "settings": {"2": {"cold,diffusion=0": {"ratio": 0.8, "low": 0.5, "high": 1.0}}}
        },
    },
}


@pytest.fixture
def some_results(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in RESULTS["surrogate"].values():
        for settings in part["settings"].values():
            for one in settings.values():
                one["cases"] = 30
    monkeypatch.setattr(by_budget, "read_result", RESULTS.__getitem__)


@pytest.mark.usefixtures("some_results")
def test_gains_are_those_of_having_a_part() -> None:
    survivors = gains("full")["early survivors"]
    assert list(survivors) == [1, 16, 64]
    assert survivors[1] == Gain(2.0, 1.25, 2.5, 1, 30, is_simulated=True)
    assert survivors[16].ratio == 1.5
    diffusion = gains("cold")["diffusion"][2]
    assert diffusion == Gain(1.25, 1.0, 2.0, 2, 30, is_simulated=True)
    assert not diffusion.pays


@pytest.mark.usefixtures("some_results")
def test_races_come_before_a_surrogate_and_the_budget_before_the_number_of_races() -> None:
    assert not gains("full")["early survivors"][16].is_simulated
    RESULTS["variants"]["early_survivors=2"]["64"] = {"mean": 0.9, "error": 0.0, "tasks": 9}
    at_64 = gains("full")["early survivors"][64]
    assert (round(at_64.ratio, 3), at_64.trials, at_64.cases) == (1.111, 64, 9)


@pytest.mark.usefixtures("some_results")
def test_settings_without_a_bundle_are_apart() -> None:
    assert gains("cold")["directions"][64].ratio == 1.1
    assert "directions" not in gains("full")


def test_the_most_useful_part_comes_first() -> None:
    def gain(ratio: float) -> Mapping[int, Gain]:
        return {4: Gain(ratio, ratio, ratio, 4, 1, is_simulated=False)}

    assert list(ranked({"a": gain(0.9), "b": gain(1.2), "c": {}}, 4)) == ["b", "a"]


def test_a_part_that_gains_next_to_nothing_neither_pays_nor_costs() -> None:
    little, enough = ((1 + n * LEAST, 1.001, 1.2) for n in (0.9, 1.1))
    assert not Gain(*little, 4, 30, is_simulated=False).pays
    assert Gain(*enough, 4, 30, is_simulated=False).pays
    assert not Gain(1 - 0.9 * LEAST, 0.9, 0.999, 4, 30, is_simulated=False).costs


@pytest.mark.parametrize("situation", SITUATIONS)
def test_tune_has_on_what_pays_and_nothing_that_costs(situation: str) -> None:
    found = gains(situation)
    assert found
    wrong = [
        (part, trials, gain)
        for part, by_trials in found.items()
        for trials, gain in by_trials.items()
        if (gain.costs if is_on(part, situation, trials) else gain.pays)
    ]
    assert not wrong


def test_what_a_bundle_brings_is_off_without_one() -> None:
    assert all(is_on("bank", "full", trials) for trials in TRIALS)
    assert not any(is_on("bank", "cold", trials) for trials in TRIALS)
