from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from costlib.data.splits import WorkloadKey, held_out_tasks, overlapping

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
