from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from costlib.errors import InputError, UnknownNameError
from costlib.workloads import extract_tasks, list_operators, load_network
from costlib.workloads.operators import OPERATORS, build_operator

EXAMPLES = {
    "avg_pool2d": "1 4 8 8 2 2",
    "batch_matmul": "2 8 16 4",
    "conv1d": "1 4 16 8 3 1 1",
    "conv1d_transpose": "1 4 8 6 4 stride=2 pad=1 bias=1",
    "conv2d": "1 4 8 8 6 3 stride=2 pad=1 bias=1 relu=1",
    "conv2d_bias_relu": "1 4 8 8 6 3 1 1",
    "conv2d_transpose": "1 4 8 8 6 4 2 1",
    "conv3d": "1 4 4 8 8 6 3",
    "dense": "8 16 4 bias=1 relu=1",
    "depthwise_conv2d": "1 4 8 8 3 1 1",
    "dilated_conv2d": "1 4 8 8 6 3 2",
    "gelu": "8 16",
    "grouped_conv2d": "1 4 8 8 6 3 2",
    "layer_norm": "8 16",
    "matmul": "8 16 4",
    "max": "8 16",
    "max_pool2d": "1 4 8 8 3 2 1",
    "mean": "8 16",
    "softmax": "8 16",
    "sum": "8 16",
    "transpose": "8 16",
}


def test_every_operator_has_an_example_here():
    assert EXAMPLES.keys() == OPERATORS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_operators_agree_with_pytorch_and_are_one_task(name, check, hardware):
    network = load_network(f"{name} {EXAMPLES[name]}")
    check(network)
    task, *placing = extract_tasks(network, hardware)
    assert task.weight == 1
    assert len(placing) == ("_transpose" in name), "a transposed convolution moves its outputs"


@pytest.mark.parametrize(
    "spec",
    ["dense 8 16 4 bias=1 relu=1 int8=1", "conv2d 1 8 6 6 8 3 pad=1 groups=2 dilation=2 int8=1"],
)
def test_quantised_ones_multiply_integers(spec, check, hardware):
    network = load_network(spec)
    check(network)
    types = [{dtype for dtype, _ in task.arguments} for task in extract_tasks(spec, hardware)]
    assert any({"uint8", "int8"} <= found for found in types)


def test_matmul_extents(hardware):
    (task,) = extract_tasks("matmul 8 16 4", hardware)
    assert [shape for _, shape in task.arguments] == [(8, 4), (4, 16), (8, 16)]
    assert task.flops == 2 * 8 * 16 * 4


def test_blanks_do_not_matter():
    assert build_operator("  matmul  8 16  4 ").name == "matmul 8 16 4"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("matmul 8 16", "does not match: matmul M N K"),
        ("matmul 8 16 4 2", "does not match"),
        ("matmul 8 16 4 q=2", "does not match"),
        ("matmul 8 16 4 M=2", "does not match"),
        ("matmul 8 -1 4", "N is '-1', not a number from 1"),
        ("matmul 8 x 4", "N is 'x'"),
        ("conv2d 1 4 8 8 6 3 stride=0", "stride is '0', not a number from 1"),
        ("conv2d 1 4 2 2 6 5", "cannot trace it: .*[Kk]ernel size"),
        ("conv2d 1 4 2 2 6 5 int8=1", "is not possible: .*[Kk]ernel size"),
        ("grouped_conv2d 1 4 8 8 6 3 5", "divisible by groups"),
    ],
)
def test_wrong_specs(spec, message):
    with pytest.raises(InputError, match=message) as caught:
        build_operator(spec)
    assert "\n" not in str(caught.value)


def test_unknown_operator():
    with pytest.raises(UnknownNameError, match="did you mean softmax"):
        build_operator("softmaxx 3 4")


def test_list_shows_the_usage():
    assert "dense M N K [bias=0] [relu=0] [int8=0]" in list_operators()


@given(st.sampled_from(sorted(OPERATORS)), st.data())
def test_positions_and_keys_mean_the_same(name, data):
    operator = OPERATORS[name]
    names = [*operator.extents, *operator.options]
    values = data.draw(
        st.lists(st.integers(1, 512), min_size=len(names), max_size=len(names)), label="values"
    )
    by_position = operator.parse([str(value) for value in values])
    by_key = operator.parse([f"{key}={value}" for key, value in zip(names, values, strict=True)])
    assert by_position == by_key == dict(zip(names, values, strict=True))
