from __future__ import annotations

import itertools
import logging
from typing import Any

import pytest

from costlib.hardware import Hardware
from costlib.space import derivation
from costlib.space.derivation import Rules, derived, postprocessed
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat import tvm
from costlib.workloads import Task

TWICE = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("first"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    for i in range(8):
        with T.sblock("second"):
            v = T.axis.spatial(8, i)
            B[v] = B[v] + A[v]
"""


def task_of(script: str, hardware: Hardware) -> Task:
    return Task("it", tvm.IRModule({"main": tvm.script.from_source(script)}), hardware.target)


def failing(monkeypatch: pytest.MonkeyPatch, *, allowed: str) -> None:
    """Let every derivation fail but the one with these words."""
    attempt = derivation._attempt

    def only(task: Task, rules: Rules) -> Any:
        if rules.words != allowed:
            raise derivation._FailedError("TVM does not feel like it")
        return attempt(task, rules)

    monkeypatch.setattr(derivation, "_attempt", only)
    derivation._derived.cache_clear()


@pytest.fixture(autouse=True)
def forgotten() -> Any:
    yield
    derivation._derived.cache_clear()


def test_tvms_own_rules_come_first(matmul: Task) -> None:
    assert derived(matmul).rules == Rules()
    assert derived(matmul).left is None


@pytest.mark.parametrize("words", ["without AddRFactor", "by the simplest rules"])
def test_a_rule_that_fails_is_left_out(
    words: str, matmul: Task, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing(monkeypatch, allowed=words)
    space = DesignSpace(matmul)
    with caplog.at_level(logging.WARNING):
        valid = [s for _, s in itertools.islice(space.sample(0), 4) if s is not None]
    assert valid
    assert space.is_tunable
    assert DesignSpace(matmul).sketches == space.sketches
    (line,) = [r.getMessage() for r in caplog.records if r.name == derivation.__name__]
    assert line == f"{matmul.title}: TVM does not feel like it; its design space is derived {words}"


def test_a_task_that_no_rule_can_schedule_is_left(
    hardware: Hardware, caplog: pytest.LogCaptureFixture
) -> None:
    space = DesignSpace(task_of(TWICE, hardware))
    with caplog.at_level(logging.WARNING):
        assert space.sketches == []
    assert space.left is not None
    assert "is valid" in space.left
    assert not space.is_tunable
    assert list(space.sample(0)) == []
    assert f"{space.task.title} is left as TVM compiles it" in caplog.text


def test_a_postprocessor_that_raises_refuses_the_program(matmul: Task) -> None:
    class Raises:
        def apply(self, schedule: Any) -> bool:
            raise RuntimeError("InternalError: Check failed")

    class Context:
        class space_generator:
            postprocs = (Raises(),)

    assert postprocessed(Context, tvm.s_tir.Schedule(matmul.mod)) is None
