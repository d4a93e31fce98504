"""What a GPU is doing, as a stand-in for nvidia-smi tells it."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from nvidia_smi import fake_smi

from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure import device_here, gpu_state
from costlib.measure.config import MeasureConfig
from costlib.measure.device_here import check_device
from costlib.measure.gpu_state import GpuState, moved, others_on_gpu


@pytest.fixture
def smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def test_clocks(smi: Path) -> None:
    fake_smi(smi, 'echo "1755, 1980, 41, 0x0000000000000001"')
    assert gpu_state.gpu_state() == GpuState(sm_mhz=1755, most_mhz=1980, celsius=41, throttled=0)


@pytest.mark.parametrize("script", ["exit 9", "echo No devices", "echo '[N/A], 1, 2, 3'"])
def test_a_driver_that_does_not_say(smi: Path, script: str) -> None:
    fake_smi(smi, script)
    assert gpu_state.gpu_state() is None
    assert others_on_gpu([]) is None


def test_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert gpu_state.gpu_state() is None


def test_a_driver_that_hangs(smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_smi(smi, "exec sleep 60")
    monkeypatch.setattr(gpu_state, "_SECS", 0.2)
    assert gpu_state.gpu_state() is None


def test_a_clock_that_moves() -> None:
    fast = GpuState(sm_mhz=1980, most_mhz=1980, celsius=50, throttled=0)
    slow = fast.model_copy(update={"sm_mhz": 1200, "throttled": 8})
    assert moved(fast, fast) is None and moved(None, slow) is None
    assert moved(fast, slow) == (
        "the GPU's clock went from 1980 to 1200 MHz meanwhile, throttled (0x8, 50 C)"
    )


def test_another_process_on_the_device_is_a_warning(
    smi: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fake_smi(smi, f"echo 4711, python3, 4000; echo {os.getpid()}, costlib, 300")
    gpu = Hardware.cuda("sm_90")
    monkeypatch.setattr(Hardware, "local_cuda", lambda: gpu)
    with caplog.at_level(logging.WARNING):
        check_device(gpu, MeasureConfig())
    assert caplog.messages == [
        "another process is on the GPU: python3 (pid 4711, 4000 MiB); what is measured meanwhile "
        "is doubtful"
    ]


def test_no_such_device(monkeypatch: pytest.MonkeyPatch) -> None:
    here = SimpleNamespace(hardware_id="nvidia-a100-sm-80")
    monkeypatch.setattr(device_here.Hardware, "local_cuda", lambda: here)
    with pytest.raises(MeasureError, match="is not the GPU that is here, nvidia-a100") as error:
        check_device(Hardware.cuda("sm_90"), MeasureConfig())
    assert "\n" not in str(error.value)
