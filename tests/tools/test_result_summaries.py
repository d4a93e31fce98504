"""Summaries are what the committed races come to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tools.evidence.ablation_summary import summarise_ablation
from tools.evidence.files import read_result
from tools.evidence.generate_summary import summarise_generate
from tools.evidence.memory_summary import summarise_memory
from tools.evidence.pages import search
from tools.evidence.races import Race, RacedTask, Side
from tools.evidence.search_summary import summarise_search
from tools.evidence.store import Store
from tools.evidence.stores import SUMMARIES
from tools.evidence.variants_summary import summarise_variants
from tools.evidence.veto_bound import bound_of_vetoes

TASK = RacedTask(name="matmul", workload_id="a" * 16, weight=1, flops=2e6)


def side(*latencies_s: float | None, active_s: float = 10, measure_s: float = 6) -> Side:
    trials = tuple((0, latency_s, n + 1.0) for n, latency_s in enumerate(latencies_s))
    return Side(trials=trials, active_s=active_s, measure_s=measure_s)


def race(kind: str, seed: int = 0, **sides: Side) -> Race:
    named = {name.replace("_plus_", " + ").replace("_", " "): one for name, one in sides.items()}
    return Race(kind=kind, what="net-0", seed=seed, hardware="x", tasks=(TASK,), sides=named)


def nearly(value: Any) -> Any:
    """The same but for the last digits of numbers, which differ from one processor to another."""
    if isinstance(value, dict):
        return {key: nearly(one) for key, one in value.items()}
    if isinstance(value, list):
        return [nearly(one) for one in value]
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value


@pytest.fixture(autouse=True)
def committed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody has measured here and not packed yet does not count."""
    monkeypatch.setattr(Store, "_raw", lambda store: iter(()))


@pytest.mark.parametrize("benchmark", SUMMARIES)
def test_a_committed_summary_is_that_of_the_committed_races(benchmark: str) -> None:
    recomputed = json.loads(json.dumps(SUMMARIES[benchmark]()))
    assert recomputed == nearly(read_result(benchmark))


def test_a_race_is_won_where_costlib_stays_as_fast_as_stock_at_its_end() -> None:
    won = race("heavy", stock=side(4.0, 3.0, 2.0, 2.0), costlib=side(3.0, 2.0, 2.0, 1.0))
    (entry,) = summarise_search([won])["heavy"]
    assert entry["reached"] == 1
    assert entry["trials_ratio"] == 0.5
    assert entry["latency_ratio"] == 2.0
    assert entry["overhead_ratio"] == 1.0


def test_a_lost_race_counts_as_all_that_was_spent() -> None:
    lost = race("heavy", stock=side(4.0, 1.0), costlib=side(3.0, 2.0))
    summary = summarise_search([lost])
    assert summary["pooled"]["heavy"]["reached"] == 0
    assert summary["pooled"]["heavy"]["trials_ratio"] == 1.0
    assert summary["heavy_by_hardware"][0]["races"] == 1


def test_of_a_lost_race_the_loops_of_both_best_programs_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(search, "_label", str)
    loops = {"stock": ["c: parallel 8", "d: 4"], "costlib": ["c: 8"]}
    lost = race("heavy", stock=side(4.0, 1.0), costlib=side(3.0, 2.0))
    won = race("heavy", 1, stock=side(4.0), costlib=side(3.0))
    races = [one.model_copy(update={"details": {"loops": loops}}) for one in (lost, won)]
    (entry,) = summarise_search(races)["heavy"]
    assert [one.get("loops") for one in entry["seeds"]] == [loops, None]
    *_, table = search._lost([entry])
    assert "| c: parallel 8<br>d: 4 | c: 8 |" in table
    assert len(table.splitlines()) == 3


def test_a_part_gains_what_it_adds_and_what_is_lost_without_it() -> None:
    races = [
        race("ablation", seed, plain=side(4.0), full=side(1.0), plain_plus_bank=side(2.0))
        for seed in (0, 1)
    ]
    races = [r.model_copy(update={"sides": r.sides | {"full - bank": side(3.0)}}) for r in races]
    rows = {row["version"]: row for row in summarise_ablation(races)}
    assert rows["full"]["gain"] == 4.0
    assert rows["plain + bank"]["gain"] == 2.0
    assert rows["full - bank"]["gain"] == 3.0
    assert rows["full - bank"]["gain_error"] == 0.0
    assert "gain" not in rows["plain"]


def test_a_part_gains_by_trials_what_the_curves_say_there() -> None:
    races = [
        race("ablation", seed, plain=side(*[4.0] * 8), full=side(*[1.0] * 8)) for seed in (0, 1, 2)
    ]
    slower = [side(*[gain] * 7, 9 * gain) for gain in (1.0, 2.0, 4.0)]
    races = [
        r.model_copy(update={"sides": r.sides | {"full - bank": less}})
        for r, less in zip(races, slower, strict=True)
    ]
    (row,) = (row for row in summarise_ablation(races) if row["version"] == "full - bank")
    found = row["by_trials"]["8"]
    assert (found["gain"], found["races"]) == (2.0, 3)
    low, high = found["interval"]
    assert low < 1 and high > 2
    assert low * high == pytest.approx(4.0, rel=1e-2)
    assert row["by_trials"].keys() == {"8"}


def test_variants_without_a_bundle_are_compared_with_the_search_without_one() -> None:
    taken_s = {"present": 1.0, "cold": 4.0, "cold,niches=0": 2.0}
    sides = {name: side(*[seconds] * 8) for name, seconds in taken_s.items()}
    raced = Race(kind="variants", what="matmul-abc", tasks=(TASK,), sides=sides)
    summary = summarise_variants([raced])
    assert summary["cold"]["8"]["mean"] == 0.25
    assert summary["cold,niches=0"]["8"]["mean"] == 2.0
    assert summary["cold"]["8"]["error"] is None


def test_a_memory_is_worth_the_trials_that_it_saves() -> None:
    without = side(8.0, 4.0, 4.0, 3.0, 3.0, 2.0, 2.0, 2.0)
    races = [
        race(
            "memory", 0, with_memory=side(4.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0), without=without
        ),
        race("memory", 1, with_memory=without, without=side(*[1.0] * 8)),
    ]
    (entry,) = summarise_memory(races)["networks"]
    won, lost = entry["seeds"]
    assert (won["reached"], won["trials_ratio"]) == (True, 0.25)
    assert won["faster"] == {"0.125": 2.0, "0.25": 2.0, "0.5": 1.5, "1": 2.0}
    assert (lost["reached"], lost["trials_ratio"]) == (False, 1.0)
    assert entry["trials_ratio"] == 0.5
    assert entry["faster"]["1"] == 1.0


def test_a_memory_of_which_nothing_is_known() -> None:
    assert summarise_memory([]) == {}


def test_generated_programs_are_compared_with_stock_at_its_ends() -> None:
    many = [4.0] * 63 + [2.0]
    sides = {
        **{way: side(*[1.0] * 32) for way in ("generate", "written", "sampled", "search")},
        "search without": side(*[2.0] * 32),
        "stock": side(*many),
    }
    details = {"programs": {"written": 4, "passed": 3}, "programs_per_s": {"written": 2.0}}
    races = [
        Race(kind="generate", what="net-0", seed=seed, tasks=(TASK,), sides=sides, details=details)
        for seed in (0, 1)
    ]
    longer = race("heavy", stock=side(*many, 1.0), costlib=side(1.0))
    summary = summarise_generate(races, [longer])
    assert summary["pooled"]["generate"]["64"] == {"1": 2.0, "4": 2.0, "16": 2.0, "32": 2.0}
    assert summary["cases"][0]["generate"]["200"]["1"] == 1.0
    assert "200" not in summary["cases"][1]["generate"]
    assert summary["generator_in_search"]["32"]["throughput"] == 2.0
    assert summary["valid"] == 0.75


def test_a_veto_gains_what_as_many_more_trials_do() -> None:
    found = race("heavy", costlib=side(*[4.0] * 17, 3.0, *[2.0] * 20))
    half, most, *later = bound_of_vetoes([found], compiling_share=0.8)
    # A tenth of the time buys two programs more after 16, and nine in fifty do four.
    assert (half["more"], half["ratio"]) == (1.111, 1.3333)
    assert (most["more"], most["ratio"]) == (1.22, 2.0)
    assert [row["ratio"] for row in later] == [1.0, 1.0]
