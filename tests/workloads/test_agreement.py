from __future__ import annotations

import numpy as np
import pytest

from costlib.tvm_compat import tvm
from costlib.workloads import InputSpec, Network
from costlib.workloads.agreement import Expectation, compare_outputs, nudged_outputs, telling_inputs
from costlib.workloads.signature import TensorSpec

X = np.array([[1.0, -2.0], [np.nan, np.inf]], "float32")
SPEC = [TensorSpec(name="y", dtype="float32", shape=(2, 2))]


def fault(ours: np.ndarray, theirs: np.ndarray = X) -> str | None:
    return compare_outputs(SPEC, [ours], [theirs])[0].fault


def test_equal_outputs_agree_in_nan_and_infinities():
    (same,) = compare_outputs(SPEC, [X], [X.copy()])
    assert same.fault is None
    assert (same.max_abs_error, same.max_abs_output) == (0, 2)


@pytest.mark.parametrize(
    ("ours", "message"),
    [
        (X.astype("float64"), "it is float64, the original's float32"),
        (X.reshape(4), r"its shape is \[4\], the original's \[2, 2\]"),
        (np.nan_to_num(X), r"2 of 4 elements differ, the first at \[1, 0\]: 0 where .* has nan"),
        (np.where(np.isinf(X), -np.inf, X).astype("float32"), r"the first at \[1, 1\]: -inf"),
        (X + np.float32(0.01), "2 of 4 elements differ"),
    ],
)
def test_differences_are_named(ours, message):
    import re

    found = fault(ours)
    assert found is not None
    assert re.search(message, found)


def test_rounding_is_no_difference_and_integers_are_exact():
    assert fault((X * np.float32(1 + 1e-6)).astype("float32")) is None
    integers = np.arange(4).reshape(2, 2)
    assert fault(integers, integers) is None
    assert fault(integers, integers + 1) is not None


def test_nan_may_be_said_to_spread_but_not_to_be_lost():
    spread = np.array([[1.0, np.nan], [np.nan, np.inf]], "float32")
    assert fault(spread) is not None
    (found,) = compare_outputs(SPEC, [spread], [X], nan_may_spread=True)
    assert found.fault is None
    (found,) = compare_outputs(SPEC, [X], [spread], nan_may_spread=True)
    assert found.fault is not None


def test_what_rounding_moves_everywhere_may_move_where_the_nudges_did_not():
    theirs = np.linspace(1, 2, 64, dtype="float32").reshape(8, 8)
    moved = theirs + np.float32(1e-3)
    moved[0, 0] = theirs[0, 0]
    ours = theirs.copy()
    ours[0, 0] += np.float32(2e-3)
    (found,) = compare_outputs(SPEC, [ours], [theirs], [[moved]])
    assert found.fault is None
    few = theirs.copy()
    few[4:] = moved[4:] + 1
    few[4, 0] = theirs[4, 0]
    (found,) = compare_outputs(SPEC, [ours], [theirs], [[few]])
    assert found.fault is not None, "it is not rounding that moves half of the elements"


def test_a_missing_output_is_a_difference():
    *_, missing = compare_outputs(SPEC, [X], [X, X])
    assert missing.fault == "1 outputs, where the original has 2"


class Rounded:
    """An original that jumps at a half."""

    name = "it"

    def __call__(self, inputs):
        return [np.floor(inputs[0] + 0.5), inputs[0] * 1000]

    def timed(self, inputs):
        raise NotImplementedError


def test_what_changes_with_a_nudge_of_the_inputs_is_not_held_against_an_output():
    inputs = [np.array([0.5, 0.2], "float32")]
    expected = Rounded()(inputs)
    nudged = nudged_outputs(Rounded(), inputs)
    assert any((outputs[0] != expected[0]).any() for outputs in nudged)
    specs = [TensorSpec(name=name, dtype="float32", shape=(2,)) for name in "ab"]
    other = [np.array([0.0, 0.0], "float32"), expected[1] + np.float32(1e-3)]
    assert all(o.fault is None for o in compare_outputs(specs, other, expected, nudged))
    wrong = [np.array([0.0, 1.0], "float32"), expected[1]]
    assert compare_outputs(specs, wrong, expected, nudged)[0].fault is not None


class Best:
    """An original that looks up the best of its inputs."""

    name = "it"

    def __call__(self, inputs):
        scores = inputs[0] * np.array([3, 1, 1], "float32")
        return [np.array([7.0, -5.0, 2.0], "float32")[scores.argmax(keepdims=True)], inputs[0]]

    def timed(self, inputs):
        raise NotImplementedError


def test_a_close_decision_may_fall_either_way():
    step = np.finfo("float32").eps
    inputs = [np.array([1 / 3, 1 + 6 * step, 0.5], "float32")]
    expectation = Expectation.of(Best(), inputs)
    assert all(outputs[0] == -5 for outputs in [expectation.expected, *expectation.nudged])
    specs = [TensorSpec(name=name, dtype="float32", shape=(n,)) for name, n in (("a", 1), ("b", 3))]
    for value, is_right in ((-5, True), (7, True), (2, False), (6, False)):
        outputs = [np.array([value], "float32"), inputs[0]]
        faults = [found.fault for found in expectation.compare(specs, outputs)]
        assert (faults == [None, None]) == is_right, value
    apart = [np.array([7], "float32"), inputs[0] + np.array([0, 0, 0.1], "float32")]
    assert any(found.fault for found in expectation.compare(specs, apart))


def test_inputs_that_can_tell():
    specs = (InputSpec("x", "float32", (3, 4)), InputSpec("i", "int64", (20,)))
    examples = (np.zeros((3, 4), "float32"), np.arange(20) - 5)
    network = Network("n", tvm.IRModule(), specs, examples=examples)
    found = dict(telling_inputs(network))
    assert next(iter(found)) == "the inputs that came with it"
    drawn = found["random inputs"][1]
    assert drawn.min() >= -5 and drawn.max() <= 14 and drawn.min() < 0
    far = found["inputs far from zero"][0]
    assert far.mean() > 50 and far.std() < 1
    assert np.isnan(found["an input that is NaN"][0]).sum() == 1
    assert np.isneginf(found["a row of -inf"][0]).sum() == 4
    assert all([a.dtype.name for a in arrays] == ["float32", "int64"] for arrays in found.values())


def test_a_network_of_integers_is_not_given_floats():
    network = Network("n", tvm.IRModule(), (InputSpec("i", "int64", (4,), 9),))
    assert [name for name, _ in telling_inputs(network)] == ["random inputs"]
