from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import api, tvm
from costlib.tvm_compat.link import link_shared
from costlib.workloads import Task


def test_json_round_trip(matmul: Task) -> None:
    again = api.module_from_json(api.module_to_json(matmul.mod))
    assert api.structural_key(again) == api.structural_key(matmul.mod)


def test_arguments_and_flops(matmul: Task) -> None:
    shapes = [shape for _, shape in api.argument_shapes(matmul.mod)]
    assert shapes == [(64, 64)] * 3
    assert api.estimate_flops(matmul.mod) == 2 * 64**3


def test_trace_json_is_plain_and_replays(matmul: Task) -> None:
    _, schedule = next(p for p in DesignSpace(matmul).sample(0) if p[1] is not None)
    instructions, decisions = api.trace_to_json(schedule.trace)
    again = tvm.s_tir.Schedule(matmul.mod)
    api.trace_from_json(instructions, decisions, again)
    assert api.structural_key(again.mod) == api.structural_key(schedule.mod)


def test_weights_that_change_their_layout_change_the_arguments(dense: Task) -> None:
    layouts = {
        api.entry_argument_shapes(schedule.mod)
        for _, (_, schedule) in zip(range(20), DesignSpace(dense).sample(0), strict=False)
        if schedule is not None
    }
    assert len(layouts) > 1


def test_build_gives_a_library_that_computes(matmul: Task, tmp_path: Path) -> None:
    import numpy as np

    api.build_library(matmul.mod, matmul.tvm_target(), tmp_path / "a.so")
    main = tvm.runtime.load_module(str(tmp_path / "a.so"))["main"]
    x, y = np.random.default_rng(0).random((2, 64, 64), "float32")
    tensors = [tvm.runtime.tensor(array) for array in (x, y, np.zeros_like(x))]
    main(*tensors)
    np.testing.assert_allclose(tensors[2].numpy(), x @ y, rtol=1e-4)


def test_directions_have_the_stock_probabilities(matmul: Task) -> None:
    found = {d: p for d, (_, p) in api.mutators(DesignSpace(matmul).context).items()}
    assert found == pytest.approx(
        {"tile_size": 0.9, "compute_location": 0.05, "unroll": 0.03, "parallel": 0.02}
    )


def test_link_shared_makes_something_loadable(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "a.c").write_text("int answer(void) { return 42; }")
    subprocess.run(["cc", "-c", "-fPIC", "a.c"], cwd=tmp_path, check=True)
    link_shared(tmp_path / "a.so", [tmp_path / "a.o"])
    assert ctypes.CDLL(str(tmp_path / "a.so")).answer() == 42
