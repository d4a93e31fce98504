from __future__ import annotations

import sys

import forked
import pytest

from costlib.tvm_compat import ms, relax, tirx, tvm
from costlib.workloads import extract_tasks, load_network, prepare_network
from costlib.workloads.extraction import _readable

pytestmark = pytest.mark.usefixtures("small_networks")


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("fused_conv2d3_add4_relu21", "conv2d_add_relu"),
        ("fused_conv2d_add1", "conv2d_add"),
        ("adaptive_avg_pool2d1", "adaptive_avg_pool2d"),
        ("fused_conv3d12_relu", "conv3d_relu"),
        ("layer_norm1", "layer_norm"),
    ],
)
def test_names_lose_what_keeps_them_unique(name, readable):
    assert _readable(name) == readable


@pytest.fixture(scope="module")
def resnet():
    return load_network("small_resnet@r64")


def test_resnet_is_convolutions_with_everything_fused(resnet, hardware):
    tasks = extract_tasks(resnet, hardware)
    convolutions = [task for task in tasks if task.name.startswith("conv2d")]
    assert {task.name for task in convolutions} == {
        "conv2d_add",
        "conv2d_add_relu",
        "conv2d_add_add_relu",
    }
    assert sum(task.weight for task in convolutions) == 20
    assert len(tasks) - len(convolutions) == 4
    assert tasks == sorted(tasks, key=lambda task: -task.weight * task.flops)
    assert len({task.workload_id for task in tasks}) == len(tasks)
    assert all(task.target == hardware.target for task in tasks)


def test_what_was_tuned_for_the_tasks_applies_to_the_network(resnet, hardware):
    target = hardware.tvm_target()
    database = ms.database.MemoryDatabase()
    for task in extract_tasks(resnet, hardware):
        workload = database.commit_workload(task.mod)
        schedule = tvm.s_tir.Schedule(task.mod)
        schedule.get_sblock("root")  # a record without any instruction counts as invalid
        record = ms.database.TuningRecord(schedule.trace, workload, [1e-3], target)
        database.commit_tuning_record(record)
    with target, database:
        mod = relax.transform.MetaScheduleApplyDatabase()(prepare_network(resnet, hardware))
    functions = [f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc)]
    assert len(functions) > 10
    assert all("tirx.is_scheduled" in function.attrs for function in functions)


def test_weights_may_change_their_layout_and_inputs_may_not(hardware):
    (dense,) = extract_tasks("dense 8 16 4", hardware)
    assert list(dense.mod["main"].attrs["layout_free_buffers"]) == [1]
    (matmul,) = extract_tasks("matmul 8 16 4", hardware)
    assert "layout_free_buffers" not in matmul.mod["main"].attrs


def test_the_same_layer_is_the_same_task_alone_and_in_a_network(resnet, hardware):
    (alone,) = extract_tasks("conv2d_bias_relu 1 16 16 16 16 3 stride=1 pad=1", hardware)
    assert alone.workload_id in {task.workload_id for task in extract_tasks(resnet, hardware)}


def test_workload_ids_are_the_same_in_another_process(hardware):
    source = "textcnn@s16"
    program = (
        "from costlib.hardware import Hardware; from costlib.workloads import extract_tasks\n"
        f"for t in extract_tasks({source!r}, Hardware.local(num_cores=1)): "
        "print(t.workload_id, t.weight)"
    )
    ours = [f"{task.workload_id} {task.weight}" for task in extract_tasks(source, hardware)]
    result = forked.run([sys.executable, "-c", program])
    assert result.stdout.split("\n")[:-1] == ours
    assert (result.returncode, result.stderr) == (0, "")
