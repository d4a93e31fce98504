"""The fork server: programs that misbehave cost one record and nothing else."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from cuda_compiler import needs_cuda_compiler

from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure.client import MeasureServer
from costlib.measure.config import BuildJob, CanaryJob, CheckJob, Job, MeasureConfig, RunJob
from costlib.measure.server import in_child
from costlib.space.design_space import DesignSpace
from costlib.tvm_compat.api import argument_shapes, module_to_json
from costlib.workloads import Task, extract_tasks

SCALAR = (("float32", (1,)),)
QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, run_timeout_secs=3, memory_bytes=1 << 28)

MISBEHAVIOUR = {
    "crashes": "*(volatile int*)0 = 1;",
    "hangs": "for (;;) {}",
    "exits": "extern void _exit(int); _exit(3);",
    "eats_memory": (
        "extern void* malloc(unsigned long); char* p;"
        "for (;;) { p = malloc(1 << 26); if (!p) { *(volatile int*)0 = 1; }"
        "for (int i = 0; i < (1 << 26); i += 4096) p[i] = 1; }"
    ),
}


@pytest.fixture(scope="module")
def server(hardware: Hardware) -> Iterator[MeasureServer]:
    with MeasureServer(hardware.target) as server:
        yield server


def build_job(server: MeasureServer, task: Task, name: str, timeout_secs: float = 30) -> BuildJob:
    return BuildJob(
        mod_json=module_to_json(task.mod),
        path=str(server.folder / name),
        timeout_secs=timeout_secs,
        memory_bytes=4 << 30,
    )


def compile_c(folder: Path, name: str, body: str) -> Path:
    """A library whose ``main`` does what ``body`` says, callable like TVM's."""
    import subprocess

    source = folder / f"{name}.c"
    source.write_text(
        "int __tvm_ffi_main(void* s, void* args, int n, void* result) { " + body + " return 0; }"
    )
    library = folder / f"{name}.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def test_builds_and_runs(server: MeasureServer, matmul: Task) -> None:
    build = build_job(server, matmul, "a.so")
    assert server.work([build])[0].error is None
    run = RunJob(path=build.path, arguments=argument_shapes(matmul.mod), config=QUICK)
    outcome = server.work([run])[0]
    assert outcome.error is None
    assert outcome.timing is not None
    assert len(outcome.timing.run_secs) == len(outcome.timing.canary_compute) == QUICK.repeats
    assert 0 < outcome.timing.run_secs[0] < 1


def test_outcomes_come_in_order(server: MeasureServer, matmul: Task) -> None:
    jobs: list[Job] = [build_job(server, matmul, f"{i}.so") for i in range(5)]
    jobs[2] = BuildJob(mod_json="{", path="x", timeout_secs=10, memory_bytes=1 << 30)
    outcomes = server.work(jobs)
    assert [outcome.error is None for outcome in outcomes] == [True, True, False, True, True]


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_misbehaving_program_costs_one_record(
    server: MeasureServer, matmul: Task, name: str
) -> None:
    library = compile_c(server.folder, name, MISBEHAVIOUR[name])
    bad = RunJob(path=str(library), arguments=SCALAR, config=QUICK)
    good = build_job(server, matmul, f"after-{name}.so")
    pid = server.pid
    outcomes = server.work([bad, good])
    assert outcomes[0].error is not None
    assert "\n" not in outcomes[0].error
    assert outcomes[0].timed_out == (name == "hangs")
    assert outcomes[1].error is None
    assert server.pid == pid


def test_build_that_takes_too_long(server: MeasureServer, matmul: Task) -> None:
    outcome = server.work([build_job(server, matmul, "slow.so", timeout_secs=0.001)])[0]
    assert outcome.timed_out
    assert not (server.folder / "slow.so").exists()


@needs_cuda_compiler
def test_builds_for_a_gpu_that_is_not_here(server: MeasureServer) -> None:
    """The CUDA compiler is a process of its own and keeps within the limits, too."""
    gpu = Hardware.cuda("sm_80")
    task = extract_tasks("softmax 64 64", gpu)[0]
    schedule = next(s for _, s in DesignSpace(task).sample(0) if s is not None)
    job = BuildJob(
        mod_json=module_to_json(schedule.mod),
        path=str(server.folder / "gpu.so"),
        target=gpu.target,
        timeout_secs=60,
        memory_bytes=4 << 30,
    )
    broken = job.model_copy(update={"target": {"kind": "cuda", "arch": "sm_13"}})
    outcomes = server.work([job, broken])
    assert outcomes[0].error is None
    assert outcomes[1].error is not None
    assert "\n" not in outcomes[1].error


def test_work_in_a_child_changes_nothing_here(tmp_path: Path) -> None:
    """So that the server may load a library for a GPU without having compiled for one."""
    here = ["state"]
    in_child(here.clear)
    assert here
    in_child((tmp_path / "done").touch)
    assert (tmp_path / "done").exists()
    with pytest.raises(SystemExit):
        in_child((tmp_path / "none" / "done").touch)


def test_missing_library(server: MeasureServer) -> None:
    job = RunJob(path=str(server.folder / "none.so"), arguments=SCALAR, config=QUICK)
    assert server.work([job])[0].error is not None


def test_check_finds_a_wrong_output(server: MeasureServer, matmul: Task) -> None:
    right, other = (build_job(server, matmul, name) for name in ("right.so", "other.so"))
    assert [outcome.error for outcome in server.work([right, other])] == [None, None]
    wrong = compile_c(server.folder, "wrong", "")

    def check(path: str) -> str | None:
        job = CheckJob(
            path=path,
            reference_path=right.path,
            arguments=argument_shapes(matmul.mod),
            timeout_secs=10,
            memory_bytes=1 << 30,
        )
        return server.work([job])[0].error

    assert check(other.path) is None
    assert "differs" in str(check(str(wrong)))


def test_canaries(server: MeasureServer) -> None:
    timing = server.work([CanaryJob(samples=3)])[0].timing
    assert timing is not None
    assert all(0 < secs < 1 for secs in (*timing.canary_compute, *timing.canary_memory))


def test_a_server_that_dies_is_started_again(hardware: Hardware, matmul: Task) -> None:
    with MeasureServer(hardware.target) as server:
        server.wait()
        os.kill(server.pid, signal.SIGKILL)
        outcome = server.work([build_job(server, matmul, "again.so")])[0]
        assert outcome.error is None


def test_a_server_that_cannot_start() -> None:
    with (
        MeasureServer({"kind": "no-such-kind"}) as server,
        pytest.raises(MeasureError, match="did not start"),
    ):
        server.work([CanaryJob(samples=1)])


def test_a_server_that_is_not_needed_is_not_waited_for(hardware: Hardware) -> None:
    with MeasureServer(hardware.target) as server:
        process, folder = psutil.Process(server.pid), server.folder
    assert not process.is_running()
    assert not folder.exists()


def test_children_die_with_the_caller(hardware: Hardware) -> None:
    with MeasureServer(hardware.target) as server:
        pid, folder = server.pid, server.folder
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
