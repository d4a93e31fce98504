"""What searches on a surrogate come to, beside races."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tools.evidence.races import Race, RacedTask, Side
from tools.evidence.simulated import BUDGETS, NETWORKS, PROOF, SCREEN, SimulatedSearch
from tools.evidence.simulated_summary import base_of, summarise_simulated

TASKS = ("net-0", "net-1", "net-2")
SPEEDS = {"full": 1.0, "plain": 0.5, "plain + draft": 0.8, "cold": 0.25}
TRIALS = 16


def search(part: str, setting: str, what: str, seconds: float, tasks: int = 1) -> SimulatedSearch:
    return SimulatedSearch(
        part=part,
        setting=setting,
        what=what,
        seed=0,
        trials=TRIALS,
        tasks=tasks,
        hardware="x",
        curve_s=(float("inf"),) + (seconds,) * (tasks * TRIALS - 1),
        seconds=2.0,
        fit={"rank_correlation": 0.8},
    )


def race(what: str, speeds: Mapping[str, float]) -> Race:
    sides = {
        name: Side(trials=tuple((0, 1 / s, n) for n in range(TRIALS)), active_s=1, measure_s=1)
        for name, s in speeds.items()
    }
    task = RacedTask(name="matmul", workload_id="a" * 16, weight=1, flops=1e6)
    return Race(kind="ablation", what=what, seed=0, tasks=(task,), sides=sides)


def test_gains_are_relative_to_the_base_at_the_same_task_and_seed() -> None:
    searches = [
        search(PROOF, name, what, scale / speed)
        for what, scale in zip(TASKS, (1, 10, 100), strict=True)
        for name, speed in SPEEDS.items()
    ]
    (part,) = summarise_simulated(searches, []).values()
    assert list(part["settings"]) == ["2", "4", "8", "16"]
    gains = part["settings"]["16"]
    assert {name: one["ratio"] for name, one in gains.items()} == {
        name: speed for name, speed in SPEEDS.items() if name != "full"
    }
    assert all(one["low"] == one["ratio"] == one["high"] for one in gains.values())
    assert (part["searches"], part["tasks"], part["seconds"]) == (12, 3, 2.0)
    assert part["agreement"] == {}


def test_an_interval_of_three_tasks_is_wider_than_what_they_gain() -> None:
    speeds = dict(zip(TASKS, (0.5, 1.0, 2.0), strict=True))
    searches = [search(PROOF, "full", what, 1.0) for what in TASKS]
    searches += [search(PROOF, "plain", what, 1 / speed) for what, speed in speeds.items()]
    found = summarise_simulated(searches, [])[PROOF]["settings"]["16"]["plain"]
    assert found["ratio"] == 1
    assert found["low"] < 0.5
    assert found["high"] > 2


def test_seeds_of_a_task_are_no_tasks() -> None:
    searches = [
        search(PROOF, name, "net-0", 1 / speed).model_copy(update={"seed": seed})
        for name, speed in SPEEDS.items()
        for seed in range(4)
    ]
    found = summarise_simulated(searches, [])[PROOF]["settings"]["16"]["plain"]
    assert found == {"ratio": 0.5, "cases": 4}


@pytest.mark.parametrize(("other_way", "spearman"), [(False, 1), (True, -1)])
def test_agreement_is_that_of_the_orders(other_way: bool, spearman: float) -> None:
    searches = [search(PROOF, name, what, 1 / s) for what in TASKS for name, s in SPEEDS.items()]
    really = {n: 1 / s if other_way else s**0.5 for n, s in SPEEDS.items()}
    races = [race(what, really) for what in TASKS]
    found = summarise_simulated(searches, races)[PROOF]["agreement"]["16"]
    assert (found["spearman"], found["low"], found["high"]) == (spearman,) * 3
    assert (found["settings"], found["races"], found["halves"]) == (4, 3, 1)
    assert found["real"]["plain"]["ratio"] == pytest.approx(really["plain"], abs=1e-4)


def test_trials_of_a_network_are_counted_for_each_of_its_tasks() -> None:
    searches = [search(NETWORKS, name, "net", 1 / s, tasks=3) for name, s in SPEEDS.items()]
    settings = summarise_simulated(searches, [])[NETWORKS]["settings"]
    assert list(settings) == ["1", "2", "4", "8", "16"]


def test_searches_that_repeat_no_race_are_compared_at_their_ends() -> None:
    some = [search(BUDGETS, n, "net", s) for n, s in (("cold", 1.0), ("cold,diffusion=0", 2.0))]
    less = [
        one.model_copy(update={"trials": 2, "curve_s": (*one.curve_s[:1], 3 * one.curve_s[1])})
        for one in some
    ]
    less[0] = less[0].model_copy(update={"curve_s": (float("inf"), 1.0)})
    settings = summarise_simulated([*some, *less], [])[BUDGETS]["settings"]
    ratios = {trials: one["cold,diffusion=0"]["ratio"] for trials, one in settings.items()}
    assert ratios == {"2": pytest.approx(1 / 6, abs=1e-4), "16": 0.5}


def test_a_setting_that_was_not_searched_to_the_end_is_left_out() -> None:
    whole, cut = search(PROOF, "full", "net-0", 1.0), search(PROOF, "plain", "net-0", 2.0)
    cut = cut.model_copy(update={"curve_s": cut.curve_s[:9]})
    settings = summarise_simulated([whole, cut], [])[PROOF]["settings"]
    assert list(settings) == ["2", "4", "8"]


@pytest.mark.parametrize(
    ("part", "setting", "base"),
    [
        (PROOF, "plain + draft", "full"),
        (SCREEN, "directions=1", "present"),
        (SCREEN, "cold", "present"),
        (SCREEN, "cold,draft=0", "cold"),
    ],
)
def test_what_a_setting_is_compared_with(part: str, setting: str, base: str) -> None:
    assert base_of(part, setting) == base


def test_a_search_survives_its_row() -> None:
    one = search(PROOF, "full", "net-0", 1.0)
    assert SimulatedSearch.from_rows(one.rows()) == one
    assert SimulatedSearch.model_validate_json(one.model_dump_json()) == one


def test_settings_that_some_tasks_lack_do_not_count_yet() -> None:
    searches = [search(PROOF, name, what, 1 / s) for what in TASKS for name, s in SPEEDS.items()]
    some = [one for one in searches if (one.setting, one.what) != ("plain", TASKS[0])]
    races = [race(what, SPEEDS) for what in TASKS]
    whole, partial = (summarise_simulated(found, races)[PROOF] for found in (searches, some))
    assert whole["agreement"]["16"]["settings"] == 4
    assert partial["agreement"]["16"]["settings"] == 3
    assert partial["settings"]["16"]["plain"]["cases"] == 2
