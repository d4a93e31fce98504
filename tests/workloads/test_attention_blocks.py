"""How many queries a kernel of attention takes at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from costlib.workloads.attention_blocks import Attention, Machine, rows_of_block


def attention_of(batch: int, queries: int, keys: int) -> Attention:
    def nothing(_: Sequence[object]) -> list[object]:
        return []

    return Attention(
        batch=(batch,),
        queries=queries,
        keys=keys,
        depth=64,
        width=64,
        query=nothing,
        key=nothing,
        value=nothing,
        keys_are_rows=False,
        steps=(),
        is_safe=False,
        ahead=None,
        place=nothing,
    )


@pytest.mark.parametrize("queries", [16, 64, 128, 197, 1500])
@pytest.mark.parametrize("num_cores", [1, 2, 64])
def test_blocks_leave_no_core_idle_and_fit_its_cache(queries: int, num_cores: int) -> None:
    what, machine = attention_of(12, queries, queries), Machine(16, 4, num_cores, 1 << 20)
    rows = rows_of_block(what, machine)
    assert 1 <= rows <= queries
    assert rows <= 6 or 4 * rows * queries <= machine.cache_bytes / 3
    blocks = 12 * math.ceil(queries / rows)
    busiest = math.ceil(blocks / num_cores) * rows
    assert busiest <= 1.25 * max(12 * queries / num_cores, rows) + 6
