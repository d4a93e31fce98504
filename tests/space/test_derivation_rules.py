"""Ansor's six derivation rules (OSDI'20, table 1) and the sketches that MetaSchedule makes by them.

| Ansor | MetaSchedule |
|---|---|
| skip | every rule keeps the block as it is beside what it derives |
| always inline | ``AutoInline`` |
| multi-level tiling | ``MultiLevelTiling`` |
| multi-level tiling with fusion | ``MultiLevelTiling`` with a consumer: ``ReverseComputeAt`` |
| add cache stage | ``MultiLevelTiling`` without one: ``CacheWrite`` |
| reduction factorisation | ``AddRFactor`` |
"""

from __future__ import annotations

from collections import Counter

import pytest

from costlib.hardware import Hardware
from costlib.space.design_space import DesignSpace
from costlib.workloads import extract_tasks


def kinds(source: str, hardware: Hardware) -> list[Counter[str]]:
    """How often each kind of instruction occurs in each sketch."""
    space = DesignSpace(extract_tasks(source, hardware)[0])
    return [Counter(i[0] for i in sketch.instructions) for sketch in space.sketches]


def test_skip(hardware: Hardware) -> None:
    sketches = kinds("sum 64 4096", hardware)
    plain = [sketch for sketch in sketches if not {"Split", "RFactor"} & sketch.keys()]
    assert len(plain) == 1
    assert len(sketches) > 1


def test_always_inline(hardware: Hardware) -> None:
    sketches = kinds("gelu 16 64", hardware)
    assert all(sketch["ComputeInline"] >= 4 for sketch in sketches)


@pytest.mark.parametrize("source", ["matmul 64 64 64", "conv2d 1 16 14 14 32 3 pad=1"])
def test_multi_level_tiling(hardware: Hardware, source: str) -> None:
    space = DesignSpace(extract_tasks(source, hardware)[0])
    for sketch in space.sketches:
        levels = sorted(i[2][0] for i in sketch.instructions if i[0] == "SamplePerfectTile")
        assert levels[0] == 2, "reduction loops: SSRSRS has two levels of R"
        assert levels[-1] == 4, "spatial loops: and four of S"
        assert "Reorder" in {i[0] for i in sketch.instructions}


def test_multi_level_tiling_with_fusion(hardware: Hardware) -> None:
    sketches = kinds("dense 64 64 64 relu=1", hardware)
    fused = [sketch for sketch in sketches if sketch["ReverseComputeAt"]]
    assert len(fused) == 2, "at either of two levels"
    assert all(sketch["CacheWrite"] == 0 for sketch in fused)
    assert any(sketch["ReverseComputeAt"] == 0 for sketch in sketches)


def test_cache_stage(hardware: Hardware) -> None:
    sketches = kinds("matmul 64 64 64", hardware)
    cached = [sketch for sketch in sketches if sketch["CacheWrite"]]
    assert len(cached) == 2
    assert all(sketch["ReverseComputeAt"] == 1 for sketch in cached)
    assert any(sketch["CacheWrite"] == 0 for sketch in sketches)


def test_reduction_factorisation(hardware: Hardware) -> None:
    sketches = kinds("sum 64 4096", hardware)
    factored = [sketch for sketch in sketches if sketch["RFactor"]]
    assert len(factored) == 2, "either of the two loops that the reduction is split into"
