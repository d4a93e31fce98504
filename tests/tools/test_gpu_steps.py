"""The steps of a machine with a GPU: what ran through is left, what failed or stopped goes on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.evidence.pages import cuda
from tools.maintenance.gpu import __main__ as steps
from tools.maintenance.gpu import networks
from tools.maintenance.gpu.bench import Bench

DONE = {"trials": 34, "wanted": 34}
STOPPED = {"trials": 3, "wanted": 34}


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of the steps that ran, in order; each finds something at once."""
    names: list[str] = []

    def step(name: str, *answers: Any) -> Any:
        left = list(answers)

        def run(bench: Bench) -> Any:
            assert bench.is_rehearsal
            names.append(name)
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, BaseException):
                raise answer
            return answer

        return run

    monkeypatch.setattr(
        steps,
        "STEPS",
        {
            "outputs": step("outputs", {"matmul": []}),
            "resnet_18": step("resnet_18", STOPPED, DONE),
            "stock": step("stock", SystemExit("no xgboost"), {"fine": 1}),
        },
    )
    monkeypatch.setattr(steps, "find_compiler", lambda: "nvcc")
    arguments = ["gpu", str(tmp_path), "--simulate", "sm_90"]
    monkeypatch.setattr(sys, "argv", arguments)
    return names


def test_called_again_it_goes_on(called: list[str], tmp_path: Path) -> None:
    assert steps.main() == 1
    assert called == ["outputs", "resnet_18", "stock"]
    found = json.loads((tmp_path / "cuda.json").read_text())
    assert found["networks"] == {"resnet_18": STOPPED}
    assert found["stock"] == {"error": "no xgboost"}
    assert found["hardware"].startswith("simulated-")
    assert steps.main() == 0
    assert called[3:] == ["resnet_18", "stock"]
    assert json.loads((tmp_path / "cuda.json").read_text())["networks"]["resnet_18"] == DONE
    assert steps.main() == 0 and len(called) == 5


def test_of_another_device_nothing_is_taken(
    called: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.main()
    monkeypatch.setattr(sys, "argv", ["gpu", str(tmp_path), "--simulate", "sm_80"])
    steps.main()
    assert called[3:] == ["outputs", "resnet_18", "stock"]


def test_without_a_gpu_it_ends_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_gpu(out: Path) -> Bench:
        raise steps.CostlibError("no CUDA device here")

    monkeypatch.setattr(Bench, "here", no_gpu)
    monkeypatch.setattr(sys, "argv", ["gpu", str(tmp_path / "out")])
    assert steps.main() != 0
    assert capsys.readouterr().out == "no CUDA device here\n"
    assert not (tmp_path / "out").exists()


def test_networks_are_shown() -> None:
    times = {"untuned_us": 9e3, "tuned_us": 2e3, "pytorch_us": 3e3, "torch_compile_us": None}
    result = {"networks": {"bert": {"error": "x"}, "resnet_50": {"trials": 7, "wanted": 9} | times}}
    title, text = cuda._networks(result)
    assert "| resnet_50 | 7 of 9 | 9.00 | 2.00 | 3.00 | - |" in text and title == "## Networks"
    assert cuda._networks({"networks": {"bert": {"error": "it broke"}}}) == []
    assert networks.is_complete(DONE) and not networks.is_complete(STOPPED)
