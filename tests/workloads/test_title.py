"""What people call tasks: operators apart, shapes, and a short id."""

from __future__ import annotations

import pytest

from costlib.hardware import Hardware
from costlib.workloads import Task, extract_tasks
from costlib.workloads.title import fused_title, operator_kind, task_title


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("depthwise_conv2d 1 16 12 12 3", "depthwise_conv2d 1×16×12×12 → 1×16×10×10, 3×3"),
        ("grouped_conv2d 1 16 12 12 32 3 4 pad=1", "grouped_conv2d 1×16×12×12 → 1×32×12×12, 3×3"),
        ("conv2d 1 16 12 12 16 1", "conv2d 1×16×12×12, 1×1"),
        ("batch_matmul 4 16 16 8", "batch_matmul 4×16×8 → 4×16×16"),
        ("dense 64 32 16 bias=1 relu=1", "dense 64×16 → 64×32 + add + relu"),
        ("matmul 64 32 16", "matmul 64×16 → 64×32"),
        ("softmax 32 64", "softmax 32×64"),
    ],
)
def test_operators_as_people_call_them(source: str, kind: str, hardware: Hardware) -> None:
    (task,) = extract_tasks(source, hardware)
    assert task.title == f"{kind} · {task.workload_id[:6]}"


def test_tasks_that_differ_are_told_apart(matmul: Task) -> None:
    (other,) = extract_tasks("matmul 64 64 32")
    assert matmul.name == other.name and matmul.title != other.title


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [
        ([(1, 8, 14, 14, 4), (16, 8, 3, 3, 4, 4), (1, 16, 14, 14, 4)], "conv2d"),
        ([(1, 8, 14, 14, 4), (8, 1, 3, 3, 1, 4), (1, 8, 14, 14, 4)], "depthwise_conv2d"),
        ([(1, 7, 7, 32), (32, 3, 3, 1), (1, 7, 7, 32)], "depthwise_conv2d"),
        ([(1, 32, 7, 7), (32, 1, 3, 3), (1, 32, 7, 7)], "depthwise_conv2d"),
        ([(1, 28, 28, 104), (104, 3, 3, 26), (1, 28, 28, 104)], "grouped_conv2d"),
        ([(1, 3), (3, 2)], "conv2d"),
        ([], "conv2d"),
    ],
)
def test_layouts_of_convolutions(shapes: list[tuple[int, ...]], kind: str) -> None:
    arguments = [("float32", shape) for shape in shapes]
    name = "fused_conv2d_subtract_divide_multiply_add_tir_sigmoid"
    assert operator_kind(name, arguments) == kind
    title = task_title(name, arguments, "0123456789")
    assert title.startswith(kind) and title.endswith(" + batch_norm + sigmoid · 012345")


def test_what_tasks_of_several_shapes_have_in_common() -> None:
    shapes = [(1, 8, 4, 4), (8, 1, 3, 3), (1, 8, 2, 2)]
    arguments = [("float32", shape) for shape in shapes]
    assert fused_title("fused_conv2d_add_relu", arguments) == "depthwise_conv2d + add + relu"
    assert fused_title("fused_conv2d_add_relu", ()) == "conv2d + add + relu"


def test_other_types_are_named() -> None:
    arguments = [("float16", (4, 4)), ("float16", (4,))]
    assert (
        task_title("reshape_sum", arguments, "abcdef12") == "reshape 4×4 → 4 float16 + sum · abcdef"
    )


def test_packed_weights_and_what_quantises() -> None:
    name = (
        "conv2d_packed_add_cast_multiply_add_divide_tir_round_add_maximum_minimum_cast_cast"
        "_cast_subtract_cast_multiply"
    )
    arguments = [
        ("uint8", (1, 32, 32, 3)),
        ("int8", (2, 3, 3, 1, 16, 4)),
        ("float32", (1, 1, 1, 32)),
        ("float32", (1, 16, 16, 32)),
    ]
    title = task_title(name, arguments, "0123456789")
    what = "add + cast + multiply + add + quantise + dequantise"
    assert title == f"conv2d 1×32×32×3 → 1×16×16×32, 3×3 NHWC uint8 + {what} · 012345"
    matrix = [("bfloat16", (4, 48)), ("bfloat16", (1, 24, 16, 2)), ("float32", (10,))]
    product = task_title("matmul_packed_add", [*matrix, ("float32", (4, 10))], "0123456789")
    assert product == "dense 4×48 → 4×10 bfloat16 + add · 012345"
