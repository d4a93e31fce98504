"""Measuring on a fleet: real trackers and servers on loopback, some of which misbehave."""

from __future__ import annotations

import errno
import functools
import itertools
import json
import logging
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import psutil
import pytest
from cross_tools import TRIPLE, needs_cross_linker
from pydantic import ValidationError

from costlib.arrays import load_arrays, save_arrays
from costlib.canary_times import CanaryTimes
from costlib.collecting.collect import collect
from costlib.collecting.plan import Mix
from costlib.data.dataset import Dataset
from costlib.errors import InputError, MeasureError
from costlib.hardware import Hardware, find_hardware
from costlib.measure import device as device_module
from costlib.measure import fleet as fleet_module
from costlib.measure import link as link_module
from costlib.measure.client import MeasureServer
from costlib.measure.config import BuildJob, CanaryJob, MeasureConfig, Outcome, RunJob, Timing
from costlib.measure.device import DESCRIBE, WORK, Description, Tracker, start_device
from costlib.measure.fleet import Fleet
from costlib.measure.measurement import Candidate
from costlib.measure.measurer import Measurer
from costlib.schema import Status
from costlib.space.design_space import DesignSpace
from costlib.tuning.tune import tune
from costlib.tvm_compat import rpc
from costlib.tvm_compat.api import argument_shapes, module_to_json
from costlib.tvm_compat.link import is_linked
from costlib.workloads import Task

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # Servers cannot import this file.

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001)
Start = Callable[..., Any]


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    server = rpc.start_tracker()
    yield "127.0.0.1", server.port
    server.terminate()


@pytest.fixture
def tracker(address: tuple[str, int], request: pytest.FixtureRequest) -> Tracker:
    """Devices of this test alone."""
    return Tracker(host=address[0], port=address[1], key=request.node.name)


@pytest.fixture
def start(tracker: Tracker) -> Iterator[Start]:
    """Start devices, and stop them all in the end."""
    running: list[Any] = []

    def start_all(*devices: Hardware | Callable[[], None]) -> list[Any]:
        there = rpc.free_devices(tracker.address, tracker.key)
        new = [
            start_device(tracker, device)
            if isinstance(device, Hardware)
            else rpc.start_server(tracker.address, tracker.key, None, device)
            for device in devices
        ]
        running.extend(new)
        while rpc.free_devices(tracker.address, tracker.key) < there + len(new):
            time.sleep(0.05)
        return new

    yield start_all
    for server in running:
        server.terminate()


def drawn(task: Task, count: int) -> list[Candidate]:
    valid = (Candidate(p, s) for p, s in DesignSpace(task).sample(0) if s is not None)
    return list(itertools.islice(valid, count))


def kill(server: Any) -> None:
    """Kill a device's server and what it has started."""
    process = psutil.Process(server.proc._proc.pid)
    for one in [*process.children(recursive=True), process]:
        os.kill(one.pid, signal.SIGKILL)


FIRST = {"canary_compute": (1e-3,), "canary_memory": (1e-3,)}
HONEST = Timing(run_secs=(1e-6,), **FIRST, raced=False)
LIE = Timing(run_secs=(1e-9,), canary_compute=(1.0,), canary_memory=(1e-3,), raced=False)


def simulated(
    hardware: Hardware, timing: Timing | None = HONEST, wait_secs: float = 0.0
) -> Callable[[], None]:
    """A device that gives the same answer to every run, and honest canaries alone.

    One without a timing has a full disk.
    """
    return functools.partial(_simulate, hardware, timing, wait_secs)


def _simulate(hardware: Hardware, timing: Timing | None, wait_secs: float) -> None:
    described = Description(device_id=uuid.uuid4().hex, hardware=hardware, triple="x86_64-linux")
    text = described.model_dump_json()

    def work(job: str) -> str:
        runs = json.loads(job)["kind"] == "run"
        time.sleep(wait_secs if runs else 0)
        if runs and timing is None:
            return Outcome(error="no room", fault="no space left").model_dump_json()
        return Outcome(timing=timing if runs else HONEST).model_dump_json()

    rpc.offer(DESCRIBE, lambda _: text)
    rpc.offer(WORK, work)


def board(hardware: Hardware) -> Callable[[], None]:
    """A device of another processor, which runs softmax alone, and only if it is its own code."""
    return functools.partial(_serve_board, hardware)


def _serve_board(hardware: Hardware) -> None:
    described = Description(device_id=uuid.uuid4().hex, hardware=hardware, triple=TRIPLE)
    text = described.model_dump_json()

    def work(job_text: str) -> str:
        job = json.loads(job_text)
        if job["kind"] in ("run", "network"):
            code = (Path.cwd() / job["path"]).read_bytes()
            is_library = code[16:18] == b"\x03\x00"
            if code[18:20] != b"\xb7\x00" or is_library != (job["kind"] == "network"):
                return Outcome(error="this is no code for AArch64").model_dump_json()
        if job["kind"] == "network" and job["outputs"] is not None:
            (x,) = load_arrays(Path.cwd() / job["inputs"])
            powers = np.exp(x - x.max(-1, keepdims=True))
            save_arrays(Path.cwd() / job["outputs"], [powers / powers.sum(-1, keepdims=True)])
        return Outcome(timing=HONEST).model_dump_json()

    rpc.offer(DESCRIBE, lambda _: text)
    rpc.offer(WORK, work)


@needs_cross_linker
def test_a_fleet_of_another_processor_gets_the_whole_network(
    tracker: Tracker, start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    arm = find_hardware("aarch64", mcpu="cortex-a76")
    start(board(arm))
    with Fleet(tracker) as fleet:
        assert fleet.only_hardware() == arm
        result = tune("softmax 16 32", out=tmp_path, trials=2, fleet=fleet)
    (network,) = result.networks
    assert (result.hardware_id, result.bundle) == (arm.hardware_id, "none")
    assert not result.simulated
    assert network.latency_after_s == HONEST.run_secs[0]
    assert network.max_abs_error < 1e-6 < network.max_abs_output
    assert "have seen no aarch64" in caplog.text
    rows = Dataset.open(tmp_path / "trials").scan().collect()
    assert rows["status"].to_list() == ["ok"] * 2


def test_measures_on_all_devices_and_survives_the_death_of_one(
    tracker: Tracker,
    start: Start,
    matmul: Task,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link_module, "_OFF", float("inf"))  # Other tests share the cores, too.
    hardware = Hardware.local(num_cores=1)  # Two devices share two cores.
    doomed, _ = start(hardware, hardware)
    seen = []
    with Fleet(tracker) as fleet:
        assert [one.hardware_id for one in fleet.hardware()] == [hardware.hardware_id]
        assert len({device.description.device_id for device in fleet.devices}) == 2

        def on_progress(progress: Any) -> None:
            seen.append(len(fleet.devices))
            if len(seen) == 1:
                kill(doomed)

        dataset = collect(
            [matmul],
            tmp_path / "data",
            programs_per_task=32,
            mix=Mix(evolved=0, mutated=0),
            config=QUICK,
            fleet=fleet,
            on_progress=on_progress,
        )
        assert list(fleet.dropped.values()) == ["it is gone"]
        check_foreign_code(fleet, hardware, matmul, tmp_path)
        result = tune("matmul 48 32 48", out=tmp_path / "run", trials=4, bundle="none", fleet=fleet)
        assert len(fleet.devices) == 1
    assert seen == [2, 1]
    rows = dataset.scan().collect()
    assert len(rows) == rows["program_id"].n_unique() == 32
    assert rows["status"].to_list() == ["ok"] * 32
    assert dataset.canary(hardware.hardware_id) is not None
    (network,) = result.networks
    assert result.hardware_id == hardware.hardware_id
    assert 0 < network.latency_after_s < 1
    assert network.pytorch_latency_s is None, "it is not on the device"
    assert network.max_abs_error < 1e-4 < network.max_abs_output


def check_foreign_code(fleet: Fleet, hardware: Hardware, task: Task, folder: Path) -> None:
    """Code for AArch64 is built and sent; an x86 device cannot link it, and goes on."""
    path = folder / "arm.so"
    build = BuildJob(
        mod_json=module_to_json(task.mod),
        path=str(path),
        target={"kind": "llvm", "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu"},
        timeout_secs=30,
        memory_bytes=4 << 30,
    )
    with MeasureServer(hardware.target) as server:
        assert server.work([build])[0].error is None
    assert path.read_bytes()[18:20] == b"\xb7\x00", "an ELF file for AArch64"
    assert not is_linked(path)
    job = RunJob(path=str(path), arguments=argument_shapes(task.mod), config=QUICK)
    outcome = fleet.pool(hardware).run(job)
    assert outcome.timing is None
    assert outcome.error is not None
    assert outcome.error.startswith("linking failed")
    assert len(fleet.devices) == 1


def test_devices_join_between_batches_or_anew_and_kinds_do_not_mix(
    tracker: Tracker, start: Start, hardware: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_module, "_SEARCH_SECS", 0.0)
    other = hardware.model_copy(update={"model": "another"})
    start(simulated(hardware))
    with Fleet(tracker) as fleet:
        pool = fleet.pool(fleet.only_hardware())
        assert pool.gather() == 1
        start(simulated(hardware), simulated(other))
        assert pool.gather() == 2
        assert {one.model for one in fleet.hardware()} == {hardware.model, "another"}
        assert fleet.pool(other).gather() == 1
        with pytest.raises(InputError, match="give each kind a key of its own"):
            fleet.only_hardware()
        (broken,) = fleet.of(other)
        os.kill(broken.pid, signal.SIGKILL)
        while not rpc.free_devices(tracker.address, tracker.key):
            time.sleep(0.05)
        assert fleet.pool(other).gather() == 1
        (anew,) = fleet.of(other)
        assert anew.description.device_id == broken.description.device_id
        assert anew.work(CanaryJob(samples=1)).timing is not None


def test_devices_that_lie_or_hang_are_dropped(
    tracker: Tracker,
    start: Start,
    hardware: Hardware,
    matmul: Task,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = QUICK.model_copy(update={"run_timeout_secs": 1.0})
    start(simulated(hardware, LIE), simulated(hardware, wait_secs=1000.0), simulated(hardware))
    with Fleet(tracker) as fleet:
        assert len(fleet.devices) == 3
        monkeypatch.setattr(link_module, "SLACK_SECS", 1.0)
        with Measurer(hardware, config, devices=fleet.pool(hardware)) as measurer:
            measurements = measurer.measure(matmul, drawn(matmul, 6))
            for _ in range(20):  # A quick honest device can leave the others without a job.
                if len(fleet.devices) > 1:
                    measurements += measurer.measure(matmul, drawn(matmul, 6))
        assert set(fleet.dropped.values()) == {
            "its canaries are off",
            "it did not answer within 2 s",
        }
        assert len(fleet.devices) == 1
    assert {m.status for m in measurements} == {Status.OK}
    assert {m.run_secs for m in measurements} == {HONEST.run_secs}


def test_without_any_device_left_it_ends_with_one_line(
    tracker: Tracker, start: Start, hardware: Hardware
) -> None:
    (only,) = start(simulated(hardware))
    with Fleet(tracker) as fleet:
        pool = fleet.pool(hardware)
        kill(only)
        with pytest.raises(MeasureError, match=r"no device of .* is left \(it is gone\)"):
            pool.run(CanaryJob(samples=1))


def test_devices_with_a_fault_are_dropped_and_their_jobs_are_not(
    tracker: Tracker, start: Start, hardware: Hardware, tmp_path: Path
) -> None:
    start(*[simulated(hardware, None)] * 3)
    library = tmp_path / "a.so"
    library.touch()
    job = RunJob(path=str(library), arguments=(), config=QUICK)
    with Fleet(tracker) as fleet:
        with pytest.raises(MeasureError, match=r"no device of .* is left \(no space left\)"):
            fleet.pool(hardware).run(job)
        assert len(fleet.dropped) == 3


@pytest.mark.parametrize(
    ("error", "is_fault"),
    [
        (MeasureError("it died twice"), True),
        (OSError(errno.ENOSPC, "full"), True),
        (ValueError("no such file was sent"), False),
    ],
)
def test_a_device_tells_its_faults_from_the_jobs(error: Exception, is_fault: bool) -> None:
    class Server:
        def work(self, jobs: Any) -> Any:
            raise error

    text = device_module._work(Server, CanaryJob(samples=1).model_dump_json())
    outcome = Outcome.model_validate_json(text)
    assert outcome.error is not None
    assert (outcome.fault is not None) == is_fault


def test_a_job_that_costs_devices_is_given_up(
    tracker: Tracker, start: Start, hardware: Hardware
) -> None:
    start(*[simulated(hardware)] * 3)
    with Fleet(tracker) as fleet:
        job = RunJob(path="/cannot/be/sent", arguments=(), config=QUICK)
        assert fleet.pool(hardware).run(job).error == "cost 2 devices"
        assert len(fleet.devices) == 1


def test_a_server_of_tvm_alone_is_refused(tracker: Tracker, start: Start) -> None:
    start(logging.getLogger)
    with pytest.raises(MeasureError, match="start `costlib serve`"):
        Fleet(tracker)


@pytest.mark.parametrize("spec", ["aarch64", "cuda:sm_80"])
def test_a_machine_is_offered_as_what_it_is(tracker: Tracker, spec: str) -> None:
    with pytest.raises(MeasureError, match=r"no aarch64|no CUDA device here|not the GPU"):
        start_device(tracker, find_hardware(spec))


def test_nothing_there(tracker: Tracker) -> None:
    with pytest.raises(MeasureError, match="no free device with the key 'test_nothing_there'"):
        Fleet(tracker)
    with pytest.raises(InputError, match=r"no tracker answers at 127\.0\.0\.1:1 "):
        Fleet(Tracker(host="127.0.0.1", port=1, key="cpu"))


@pytest.mark.parametrize("address", ["", "host", ":1", "host:", "host:x", "host:0", "host:70000"])
def test_trackers_are_named_by_host_and_port(address: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT"):
        Tracker.parse(address, "cpu")


def test_a_key_is_needed() -> None:
    with pytest.raises(InputError, match="--key"):
        Tracker.parse("host:1", None)


@pytest.mark.parametrize("name", ["/etc/passwd", "../up.so", "a/b.so"])
def test_paths_stay_in_the_session(name: str) -> None:
    job = RunJob(path=name, arguments=(), config=QUICK)
    with pytest.raises(ValueError, match="not the name of a file"):
        device_module._placed(job)


def test_canaries_tell(hardware: Hardware) -> None:
    device = link_module.Device.__new__(link_module.Device)
    device.canary = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
    assert not device.is_off(HONEST)
    assert not device.is_off(HONEST.model_copy(update={"canary_compute": (7.9e-3,)}))
    assert device.is_off(HONEST.model_copy(update={"canary_compute": (8.1e-3,)}))
    assert device.is_off(HONEST.model_copy(update={"canary_memory": (0.1e-3,)}))


@pytest.mark.parametrize("seconds", [[], [0.0], [-1.0], ["nan"], ["inf"], [None], "x"])
@pytest.mark.parametrize("field", ["run_secs", "canary_compute", "canary_memory"])
def test_times_that_cannot_be(field: str, seconds: Any) -> None:
    if (field, seconds) == ("run_secs", []):
        return  # As of canaries alone.
    with pytest.raises(ValidationError):
        Timing.model_validate(HONEST.model_dump() | {field: seconds})
