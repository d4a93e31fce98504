from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from costlib.errors import TargetError
from costlib.hardware import Hardware
from costlib.measure import doctor
from costlib.measure.client import MeasureServer
from costlib.tvm_compat import cuda_driver, tvm


def findings(monkeypatch: pytest.MonkeyPatch) -> dict[str, doctor.Finding]:
    """All but the noise, which takes seconds."""
    monkeypatch.setattr(doctor, "_noise", lambda: iter(()))
    return {finding.check: finding for finding in doctor.examine()}


@pytest.mark.parametrize(("governor", "fine"), [("performance", True), ("powersave", False)])
def test_frequency_scaling(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, governor: str, fine: bool
) -> None:
    file = tmp_path / "scaling_governor"
    file.write_text(f"{governor}\n")
    monkeypatch.setattr(doctor, "_GOVERNOR", file)
    found = findings(monkeypatch)["frequency scaling"]
    assert found.value == governor
    assert (found.advice == "") == fine


def test_fewer_cores_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(doctor.os, "cpu_count", lambda: 8)
    found = findings(monkeypatch)["usable cores"]
    assert found.value == "1 of 8"
    assert "may not use all cores" in found.advice


def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.os, "getloadavg", lambda: (99.0, 1.0, 1.0))
    assert "something else is running" in findings(monkeypatch)["load, last minute"].advice


def test_packages_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "polars":
            raise metadata.PackageNotFoundError
        return "0.19.0" if name == "apache-tvm" else real(name)

    monkeypatch.setattr(metadata, "version", version)
    found = findings(monkeypatch)
    assert found["apache-tvm"].fatal and "apache-tvm==0.27" in found["apache-tvm"].advice
    assert found["polars"].fatal and found["polars"].advice == "run: pip install polars"


def test_a_machine_that_cannot_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MeasureServer, "work", lambda self, jobs: [doctor_outcome()])
    (found,) = doctor._noise()
    assert found.fatal


def doctor_outcome() -> object:
    return type("Outcome", (), {"timing": None})()


def for_target(target: str) -> dict[str, doctor.Finding]:
    return {finding.check: finding for finding in doctor.examine_target(target)}


def test_what_is_missing_for_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = for_target("aarch64+sve")
    assert found["code generation"].advice == ""
    assert "apt-get install binutils-aarch64-linux-gnu" in found["cross linker"].advice
    assert "apt-get install qemu-user" in found["emulator"].advice
    assert not any(finding.fatal for finding in found.values())
    monkeypatch.undo()
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    found = for_target("aarch64")
    assert found["cross linker"].value == "/bin/aarch64-linux-gnu-ld"
    assert (found["emulator"].value, found["emulator"].advice) == ("qemu-aarch64", "")


class Driver:
    """A driver for a version of CUDA that starts, or does not."""

    def __init__(self, version: int, code: int) -> None:
        self.version = version
        self.code = code

    def cuDriverGetVersion(self, place: Any) -> int:
        place._obj.value = self.version
        return 0

    def cuInit(self, _: int) -> int:
        return self.code


@pytest.mark.parametrize(
    ("driver", "line"),
    [
        (Driver(12040, 0), "the NVIDIA driver is for CUDA 12.4, and TVM needs 13.0: update"),
        (Driver(13000, 100), "the NVIDIA driver finds no GPU"),
        (Driver(13000, 999), "the NVIDIA driver does not start (error 999)"),
        (None, "no NVIDIA driver is installed"),
    ],
)
def test_drivers(driver: Driver | None, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Driver:
        if driver is None:
            raise OSError(name)
        return driver

    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", load)
    monkeypatch.setattr(cuda_driver, "needed_cuda", lambda: 13)
    monkeypatch.setattr(tvm, "cuda", lambda _: SimpleNamespace(exist=False))
    found = for_target("cuda")
    assert found["NVIDIA driver"].advice.startswith(line)
    assert found["GPU"].value == "none"
    with pytest.raises(TargetError, match=re.escape(line)):
        Hardware.local_cuda()
    assert cuda_driver.driver_problem() is not None


def test_a_driver_that_is_new_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", lambda _: Driver(13010, 0))
    assert cuda_driver.driver_problem() is None
    assert cuda_driver.needed_cuda() == 13


def test_a_gpu_that_is_not_meant_to_be_here() -> None:
    assert {"code generation", "CUDA compiler"} <= for_target("cuda:sm_80").keys()
    assert "GPU" not in for_target("cuda:sm_80")
    with pytest.raises(TargetError, match="no hardware is called 'arm'"):
        for_target("arm")
