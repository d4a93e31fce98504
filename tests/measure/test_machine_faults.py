"""Faults of the machine, really made: none of them is a record of a program."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from limited import limited

from costlib.errors import EnvironmentMismatchError, MeasureError
from costlib.hardware import Hardware
from costlib.measure import limits
from costlib.measure.client import MeasureServer
from costlib.measure.config import BuildJob, MeasureConfig, RunJob
from costlib.measure.faults import fault_in, fault_of, machine_faults, why_died
from costlib.measure.limits import MemoryLimit, check_address_space
from costlib.tvm_compat.api import argument_shapes, module_to_json
from costlib.workloads import Task

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)


@pytest.fixture(scope="module")
def server(hardware: Hardware) -> Iterator[MeasureServer]:
    with MeasureServer(hardware.target) as server:
        yield server


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Path]:
    """A small file system from which nothing can be run."""
    folder = tmp_path / "mount"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k,noexec", "tmpfs", str(folder)]
    mounts = shutil.which("mount") is not None
    if not mounts or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("cannot mount a file system here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def build(folder: Path, task: Task) -> BuildJob:
    mod_json = module_to_json(task.mod)
    path = str(folder / "program.so")
    return BuildJob(mod_json=mod_json, path=path, timeout_secs=30, memory_bytes=4 << 30)


def stops(server: MeasureServer, job: BuildJob | RunJob) -> str:
    with pytest.raises(MeasureError) as raised:
        server.work([job])
    message = str(raised.value)
    assert "\n" not in message
    return message


def test_a_full_disk(server: MeasureServer, matmul: Task, mount: Path) -> None:
    (mount / "fill").write_bytes(bytes(56 << 10))
    message = stops(server, build(mount, matmul))
    assert "cannot build programs" in message
    assert "No space left on device; free some space" in message
    (mount / "fill").unlink()
    assert server.work([build(mount, matmul)])[0].error is None


def test_a_library_that_may_not_be_executed(
    server: MeasureServer, matmul: Task, mount: Path
) -> None:
    job = build(mount, matmul)
    assert server.work([job])[0].error is None
    run = RunJob(path=job.path, arguments=argument_shapes(matmul.mod), config=QUICK)
    message = stops(server, run)
    assert "cannot run programs" in message
    assert "set TMPDIR" in message


@pytest.mark.parametrize("most", [1 << 10, 12 << 10])
def test_files_that_may_not_be_so_large(server: MeasureServer, matmul: Task, most: int) -> None:
    """LLVM ends the process that cannot write an object file; the linker is killed."""
    with limited(server.pid, resource.RLIMIT_FSIZE, most):
        assert "ulimit -f" in stops(server, build(server.folder, matmul))


def test_too_few_file_descriptors(server: MeasureServer, matmul: Task) -> None:
    taken = {int(entry.name) for entry in Path(f"/proc/{server.pid}/fd").iterdir()}
    free = [number for number in range(100) if number not in taken]
    for most in (free[0], free[2], free[3]):
        with limited(server.pid, resource.RLIMIT_NOFILE, most):
            assert "ulimit -n" in stops(server, build(server.folder, matmul))
    assert server.work([build(server.folder, matmul)])[0].error is None


def test_a_lower_limit_of_memory_than_ours(server: MeasureServer, matmul: Task) -> None:
    job = build(server.folder, matmul)
    mapped = psutil.Process(server.pid).memory_info().vms
    with limited(server.pid, resource.RLIMIT_AS, mapped + (300 << 20)):
        assert server.work([job])[0].error is None
        arguments = (("float32", (1 << 26,)),)
        run = RunJob(path=job.path, arguments=arguments, config=QUICK)
        message = stops(server, run)
    assert "ulimit -v" in message
    small = QUICK.model_copy(update={"memory_bytes": 1 << 27})
    outcome = server.work([run.model_copy(update={"config": small})])[0]
    assert outcome.error == "out of memory (limit 128 MiB)", "our own limit is the program's"


def test_a_limit_is_only_ever_lowered() -> None:
    script = (
        "import resource; from costlib.measure.limits import MemoryLimit\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 34))\n"
        "limit = MemoryLimit.of_child(1 << 40); limit.impose()\n"
        "assert not limit.is_ours, limit\n"
        "assert resource.getrlimit(resource.RLIMIT_AS) == (1 << 33, 1 << 33)\n"
        "limit = MemoryLimit.of_child(1 << 30); limit.impose()\n"
        "assert limit.is_ours and resource.getrlimit(resource.RLIMIT_AS)[0] < 1 << 33\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert MemoryLimit.of_child(1 << 20).is_ours


def test_too_little_address_space(monkeypatch: pytest.MonkeyPatch) -> None:
    check_address_space()
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (1 << 30, resource.RLIM_INFINITY))
    with pytest.raises(MeasureError, match="allows 1024 MiB"):
        check_address_space()


def test_no_linker(hardware: Hardware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    did_not_start = r"did not start: no linker found; install binutils"
    with MeasureServer(hardware.target) as server, pytest.raises(MeasureError, match=did_not_start):
        server.wait()
    assert list(tmp_path.iterdir()) == [], "the folder is removed"


def test_what_is_certain() -> None:
    assert "TMPDIR" in str(fault_of(OSError(errno.ENOSPC, "full")))
    assert fault_of(OSError(errno.ENOENT, "gone")) is None
    assert fault_of(EnvironmentMismatchError("no linker found")) == "no linker found"
    assert fault_of(ValueError("Permission denied to tile")) is None
    assert fault_in("a\nlinking failed: Disk quota exceeded\n") is not None
    assert fault_in("undefined symbol: expf") is None
    assert why_died("") == "it said nothing; is the machine out of memory?"
    assert why_died("Traceback\nMemoryError").startswith("MemoryError; free some memory")
    too_many = pytest.raises(MeasureError, match="not possible: Too many open files; raise")
    with too_many, machine_faults("not possible"):
        raise OSError(errno.EMFILE, "x")


def test_a_server_that_is_killed_again_and_again(
    server: MeasureServer, matmul: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last, for it leaves the server dead."""
    os.kill(server.pid, signal.SIGKILL)
    monkeypatch.setattr(server, "_start", lambda: None)
    with pytest.raises(MeasureError, match=r"died twice \(-9\)"):
        server.work([build(server.folder, matmul)])
