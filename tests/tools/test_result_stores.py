"""Pieces of a benchmark: raw, packed, read again, never measured twice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from tools.evidence.races import Race, RacedTask, Side, curve
from tools.evidence.store import Store
from tools.evidence.stores import STORES

SECONDS = st.floats(1e-7, 1e3)
SIDES = st.builds(
    Side,
    trials=st.lists(
        st.tuples(st.integers(0, 3), st.none() | SECONDS, SECONDS), min_size=1, max_size=6
    ).map(tuple),
    again=st.none() | st.lists(st.tuples(st.integers(0, 5), SECONDS), max_size=3).map(tuple),
    active_s=SECONDS,
    measure_s=SECONDS,
    settings=st.none() | st.dictionaries(st.text(), st.booleans() | st.integers(), max_size=2),
)
RACES = st.builds(
    Race,
    kind=st.sampled_from(["heavy", "network"]),
    what=st.text(min_size=1),
    seed=st.none() | st.integers(0, 9),
    hardware=st.none() | st.text(),
    bundle=st.none() | st.text(),
    tasks=st.lists(
        st.builds(
            RacedTask,
            name=st.text(),
            workload_id=st.text(),
            weight=st.integers(1, 99),
            flops=st.floats(0, 1e12),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    sides=st.dictionaries(st.text(), SIDES, min_size=1, max_size=3),
    details=st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers(0, 9)), max_size=2),
)


def race(seed: int, latency_s: float = 1e-3) -> Race:
    side = Side(trials=((0, latency_s, 1.5),), again=((0, latency_s),), active_s=2.0, measure_s=1.0)
    task = RacedTask(name="matmul", workload_id="a" * 16, weight=1, flops=2e6)
    return Race(kind="heavy", what="net-0", seed=seed, tasks=(task,), sides={"stock": side})


@pytest.fixture
def store(tmp_path: Path) -> Store[Race]:
    return Store("search", Race, tmp_path)


@settings(max_examples=30, deadline=None)
@given(RACES)
def test_a_race_is_the_same_out_of_its_rows(raced: Race) -> None:
    frame = pl.DataFrame(raced.rows(), Race.columns)
    again = Race.from_rows(list(frame.iter_rows(named=True)))
    assert again == raced
    assert list(again.sides) == list(raced.sides)


@settings(max_examples=30, deadline=None)
@given(RACES)
def test_a_race_is_the_same_out_of_json(raced: Race) -> None:
    assert Race.model_validate_json(raced.model_dump_json(exclude_none=True)) == raced


def test_what_is_raw_or_packed_is_known(store: Store[Race]) -> None:
    assert "heavy-net-0-seed0" not in store
    store.save(race(0))
    assert "heavy-net-0-seed0" in store
    assert store.pack() == 1
    assert not list(store.raw_folder.iterdir())
    assert "heavy-net-0-seed0" in store
    assert "heavy-net-0-seed1" not in store


def test_packing_adds_to_what_is_packed(store: Store[Race]) -> None:
    store.save(race(1))
    store.pack()
    store.save(race(0))
    assert store.load() == [race(0), race(1)]
    assert store.pack() == 1
    assert store.load() == [race(0), race(1)]
    assert store.pack() == 0
    assert pl.read_parquet(store.packed_file)["benchmark"].unique().to_list() == ["search"]


def test_a_kill_before_raw_files_are_removed_loses_and_doubles_nothing(store: Store[Race]) -> None:
    store.save(race(0))
    store.pack()
    store.save(race(0))
    store.save(race(1))
    assert store.load() == [race(0), race(1)]
    store.pack()
    assert store.load() == [race(0), race(1)]


def test_what_is_raced_again_takes_the_old_one_s_place(store: Store[Race]) -> None:
    store.save(race(0))
    store.pack()
    store.save(race(0, latency_s=5e-4))
    store.pack()
    assert store.load() == [race(0, latency_s=5e-4)]


def test_a_damaged_raw_file_is_refused_and_stays(store: Store[Race]) -> None:
    store.save(race(0))
    (store.raw_folder / "broken.json").write_text('{"kind": "heavy"')
    with pytest.raises(ValidationError):
        store.pack()
    assert "heavy-net-0-seed0" in store
    assert not store.packed_file.exists()


def test_a_curve_is_infinite_until_each_task_has_a_program() -> None:
    side = Side(
        trials=((0, 3.0, 1.0), (1, None, 2.0), (1, 5.0, 3.0), (0, 1.0, 4.0)),
        active_s=4,
        measure_s=2,
    )
    seconds = curve(side, race(0).model_copy(update={"tasks": _weighted(2, 1)}).weights)
    assert seconds.tolist() == [float("inf"), float("inf"), 11.0, 7.0]
    assert (side.overhead_s, side.seconds) == (0.5, 1.0)


def test_a_second_look_decides_what_a_leader_took() -> None:
    trials = ((0, 3.0, 1.0), (0, 1.0, 2.0), (0, 2.0, 3.0))
    side = Side(trials=trials, again=((0, 2.5), (1, 4.0)), active_s=3, measure_s=2)
    assert curve(side, race(0).weights).tolist() == [2.5, 4.0, 4.0]


def _weighted(*weights: int) -> tuple[RacedTask, ...]:
    return tuple(RacedTask(name="x", workload_id="x", weight=w, flops=1) for w in weights)


@pytest.mark.parametrize("benchmark", STORES)
def test_nothing_measured_waits_to_be_packed(benchmark: str) -> None:
    store = STORES[benchmark]
    names = [record.name for record in store.load()]
    assert names or not store.packed_file.exists()
    assert names == sorted(set(names))
