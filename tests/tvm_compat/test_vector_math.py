from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from costlib.hardware import Hardware
from costlib.tvm_compat import te, tvm

FUNCTIONS = {"exp": (te.exp, np.exp), "erf": (te.erf, special.erf)}


def vectors(function: Callable[[Any], Any], dtype: str, count: Any) -> Any:
    """Return a function of so many numbers, a vector at a time."""
    given = te.placeholder((count,), dtype, name="given")
    made = te.compute((count,), lambda i: function(given[i]), name="made")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([given, made]))
    _, lanes = schedule.split(schedule.get_loops(schedule.get_sblock("made"))[0], [None, 8])
    schedule.vectorize(lanes)
    return schedule.mod


def compiled(function: Callable[[Any], Any], dtype: str, hardware: Hardware) -> Any:
    """Compile a function of as many numbers as there are, a vector at a time."""
    return tvm.compile(vectors(function, dtype, te.var("count")), target=hardware.tvm_target())


def called(function: Any, numbers: Any) -> Any:
    given, made = tvm.runtime.tensor(numbers), tvm.runtime.tensor(np.zeros_like(numbers))
    function["main"](given, made)
    return made.numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_is_nearly_exact(name: str, hardware: Hardware) -> None:
    ours, exact = FUNCTIONS[name]
    numbers = np.concatenate([np.linspace(-87.3, 88.7, 40_001), np.linspace(-5, 5, 40_001)])
    numbers = numbers.astype("float32")
    found = called(compiled(ours, "float32", hardware), numbers)
    np.testing.assert_allclose(found, exact(numbers.astype("float64")), rtol=4e-7)


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("exp", [-np.inf, -200, -0.0, 0, 1e-30, 89, 1000, np.inf], [0, 0, 1, 1, 1] + 3 * [np.inf]),
        ("erf", [-np.inf, -200, 0, 1e-30, 200, np.inf], [-1, -1, 0, 2e-30 / np.pi**0.5, 1, 1]),
    ],
)
def test_ends_of_the_range(
    name: str, given: list[float], wanted: list[float], hardware: Hardware
) -> None:
    found = called(
        compiled(FUNCTIONS[name][0], "float32", hardware), np.array([*given, np.nan], "float32")
    )
    np.testing.assert_allclose(found, np.array([*wanted, np.nan], "float32"), rtol=4e-7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_library_is_called(name: str, hardware: Hardware) -> None:
    assembly = compiled(FUNCTIONS[name][0], "float32", hardware).mod.inspect_source("asm")
    assert f"{name}f" not in assembly
    assert "vfmadd" in assembly or "vmulps" in assembly


@pytest.mark.parametrize("function", [te.erf, te.nearbyint])
def test_vectors_stay_vectors(function: Callable[[Any], Any]) -> None:
    """TVM would make a loop of one, and unroll it."""
    passes = tvm.s_tir.transform
    lowered = tvm.transform.Sequential(
        [
            passes.ConvertBlocksToOpaque(),
            passes.LowerOpaqueBlock(),
            tvm.tirx.transform.FlattenBuffer(),
            tvm.tirx.transform.VectorizeLoop(),
        ]
    )(vectors(function, "float32", 64))
    assert f"T.{function.__name__}(given_1[T.Ramp(" in lowered.script()


def test_rounding_is_to_even(hardware: Hardware) -> None:
    numbers = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, np.inf, np.nan], "float32")
    found = called(compiled(te.nearbyint, "float32", hardware), numbers)
    np.testing.assert_array_equal(found, np.round(numbers))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_doubles_stay_doubles(name: str, hardware: Hardware) -> None:
    ours, exact = FUNCTIONS[name]
    numbers = np.linspace(-5, 5, 1001)
    found = called(compiled(ours, "float64", hardware), numbers)
    np.testing.assert_allclose(found, exact(numbers), rtol=1e-14)
