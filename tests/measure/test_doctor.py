from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from costlib.measure import doctor
from costlib.measure.client import MeasureServer


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
