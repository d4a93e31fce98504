from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from costlib.tvm_compat import relax
from costlib.tvm_compat.straight_line import (
    ALIGNMENT,
    Base,
    Call,
    Line,
    Tensor,
    pack_constants,
    plan_memory,
)


def tensor(number: int, size: int, kind: str = "allocation") -> Tensor:
    return Tensor(Base(kind, number), (size,), "uint8")  # type: ignore[arg-type]


@st.composite
def lines(draw: st.DrawFn) -> Line:
    sizes = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=12))
    tensors = st.sampled_from([tensor(number, size) for number, size in enumerate(sizes)])
    calls = draw(st.lists(st.lists(tensors, min_size=1, max_size=4), min_size=1, max_size=15))
    used = [one for call in calls for one in call]
    return Line(calls=[Call("kernel", call) for call in calls], result=used[-1])


@given(lines())
def test_what_lives_at_the_same_time_does_not_overlap(line: Line) -> None:
    plan = plan_memory(line)
    used = {t.base: t.nbytes for call in line.calls for t in call.tensors}
    assert set(plan.offsets) == set(used) - {line.result.base}
    lives = {
        base: [n for n, call in enumerate(line.calls) if base in {t.base for t in call.tensors}]
        for base in plan.offsets
    }
    for one, first in plan.offsets.items():
        assert first % ALIGNMENT == 0
        assert first + used[one] <= plan.nbytes
        for other, second in plan.offsets.items():
            apart = lives[one][-1] < lives[other][0] or lives[other][-1] < lives[one][0]
            if one != other and not apart:
                assert first + used[one] <= second or second + used[other] <= first


def test_memory_is_used_again() -> None:
    chain = [tensor(number, 1024) for number in range(6)]
    calls = [Call("kernel", [chain[i], chain[i + 1]]) for i in range(5)]
    assert plan_memory(Line(calls=calls, result=chain[-1])).nbytes == 2 * 1024


@given(st.lists(st.integers(0, 200), min_size=1, max_size=8))
def test_constants_are_found_where_they_are_said_to_be(sizes: list[int]) -> None:
    arrays = [np.random.default_rng(size).integers(0, 256, size, "uint8") for size in sizes]
    tensors = [tensor(number, size, "constant") for number, size in enumerate(sizes)]
    line = Line(constants=[relax.const(array) for array in arrays], calls=[Call("k", tensors)])
    (packs,) = pack_constants([line])
    for one, array in zip(tensors, arrays, strict=True):
        piece, start = packs.places[one.base]
        assert start % ALIGNMENT == 0
        found = packs.tensors[piece].numpy()[start : start + len(array)]
        assert found.tolist() == array.tolist()


def test_a_large_constant_is_not_copied() -> None:
    sizes = [100, 16 << 20, 300]
    constants = [relax.const(np.full(size, number, "uint8")) for number, size in enumerate(sizes)]
    tensors = [tensor(number, size, "constant") for number, size in enumerate(sizes)]
    (packs,) = pack_constants([Line(constants=constants, calls=[Call("k", tensors)])])
    small, large = packs.tensors
    assert large.same_as(constants[1].value)
    assert [packs.places[one.base] for one in tensors] == [(0, 0), (1, 0), (0, 128)]
    assert small.numpy()[:100].tolist() == [0] * 100
    assert small.numpy()[128:].tolist()[:300] == [2] * 300
