from __future__ import annotations

import pytest
from dataset_rows import CANARY, hardware, measurement, network, workload
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from costlib.data.dataset import Dataset
from costlib.data.splits import (
    Split,
    WorkloadKey,
    dealt,
    held_out_tasks,
    overlapping,
    split_by_hardware,
    split_by_network,
    split_by_task,
)
from costlib.errors import UnknownNameError

IDS = st.sets(st.text("abcdef0123456789", min_size=4, max_size=4), min_size=2, max_size=40)


@given(IDS, st.floats(0.05, 0.95))
def test_about_the_share_is_held_out(ids: set[str], share: float) -> None:
    chosen = held_out_tasks(ids, share)
    assert chosen <= ids
    assert abs(len(chosen) - share * len(ids)) <= 1


@given(IDS)
def test_a_growing_dataset_keeps_most_tasks_on_their_side(ids: set[str]) -> None:
    ordered = sorted(ids)
    before = held_out_tasks(ordered[:-1], 0.3)
    after = held_out_tasks(ordered, 0.3)
    assert len(before - after) <= 1


def test_near_duplicates_overlap() -> None:
    held = WorkloadKey.of("a", "matmul_add", [(1, 128, 64), (64, 32), (1, 128, 32)])
    larger_batch = WorkloadKey.of("b", "matmul_add", [(4, 128, 64), (64, 32), (4, 128, 32)])
    other_shape = WorkloadKey.of("c", "matmul_add", [(1, 128, 64), (64, 48), (1, 128, 48)])
    other_operator = WorkloadKey.of("d", "matmul", [(1, 128, 64), (64, 32), (1, 128, 32)])
    candidates = [held, larger_batch, other_shape, other_operator]
    assert overlapping(candidates, [held]) == {"a", "b"}
    assert overlapping(candidates, []) == set()


BATCHES = {"a": 1, "a4": 4}
"""Two workloads that differ in the batch."""


@pytest.fixture
def zoo(dataset: Dataset) -> Dataset:
    """Workloads a, a4, b to f on two hardwares; a4 is a with another batch."""
    machines = [hardware(cores) for cores in (2, 4)]
    names = ["a", "a4", *"bcdef"]
    for extent, name in enumerate(names):
        batch = BATCHES.get(name, 1)
        columns = 8 if name in BATCHES else 16 + extent
        argument = {"dtype": "float32", "shape": [batch, columns]}
        dataset.append_workloads([workload(name, arguments=[argument])])
    dataset.append_networks([network("one", "a"), network("one", "b"), network("two", "c")])
    for machine in machines:
        dataset.add_hardware(machine, CANARY)
        rows = [measurement(0, name) for name in names if (machine, name) != (machines[1], "f")]
        dataset.append_measurements(machine.hardware_id, rows)
    return dataset


def assert_no_leak(split: Split, of: int) -> None:
    assert not split.train.workload_ids & split.test.workload_ids
    sides = [side for side in (split.train, split.test) if BATCHES.keys() & side.workload_ids]
    assert len(sides) == 1
    assert len(split.train.workload_ids) + len(split.test.workload_ids) + split.removed == of
    assert split.test.workload_ids


@given(seed=st.integers(0, 100), share=st.floats(0.1, 0.9))
@settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_split_leaks(zoo: Dataset, seed: int, share: float) -> None:
    split = split_by_task(zoo, share, seed)
    assert_no_leak(split, of=7)
    assert split.train.hardware_ids == split.test.hardware_ids == set(zoo.hardware())
    judged = hardware(4).hardware_id
    split = split_by_hardware(zoo, [judged], share, seed)
    assert_no_leak(split, of=7)
    assert split.test.hardware_ids == {judged}
    assert split.train.hardware_ids == {hardware(2).hardware_id}
    assert "f" not in split.test.workload_ids


def test_a_network_is_judged_with_all_its_tasks(zoo: Dataset) -> None:
    split = split_by_network(zoo, ["one"])
    assert split.test.workload_ids == {"a", "b"}
    assert split.train.workload_ids == {"c", "d", "e", "f"}
    assert split.removed == 1
    assert split_by_network(zoo, ["two"]).removed == 0


def test_names_that_are_not_there(zoo: Dataset) -> None:
    with pytest.raises(UnknownNameError, match="network 'three'"):
        split_by_network(zoo, ["three"])
    with pytest.raises(UnknownNameError, match="hardware 'nope'"):
        split_by_hardware(zoo, ["nope"], 0.5)


def test_look_alikes_are_dealt_into_the_same_fold() -> None:
    keys = [WorkloadKey.of(f"w{n}", "matmul", [(n % 4, 8 * (n // 2))]) for n in range(40)]
    folds = dealt(keys, 5)
    assert {folds[key.workload_id] for key in keys} == set(range(5))
    of_likeness: dict[str, set[int]] = {}
    for key in keys:
        of_likeness.setdefault(key.likeness, set()).add(folds[key.workload_id])
    assert len(of_likeness) == 20
    assert all(len(found) == 1 for found in of_likeness.values())
    assert dealt(keys, 5, seed=1) != folds
