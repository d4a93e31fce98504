"""The noise of measurements, as records show it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.data.records import measurement_row
from costlib.hardware import Hardware
from costlib.measure.correction import slow_down
from costlib.measure.measurement import Measurement
from costlib.schema import Origin, Status
from costlib.space.program import Program
from costlib.testing.noise import Noise

REFERENCE = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
REPEATED = 0.1


def record(number: int, **changes: object) -> Measurement:
    """A program whose second repeat takes a bit longer; half of all moments are slow."""
    slow = 1.0 if number % 2 else 2.0
    settings: dict[str, object] = {
        "latency_s": 1e-4,
        "run_secs": (slow * 1e-4, slow * 1e-4 * np.exp(REPEATED)),
        "canary_compute": (1.05 * slow * 1e-3,) * 2,
        "canary_memory": (1e-3,) * 2,
    }
    return Measurement(Program("w", "s", [[0, number]]), Status.OK, **(settings | changes))  # type: ignore[arg-type]


@pytest.fixture
def dataset(tmp_path: Path, hardware: Hardware) -> Dataset:
    made = Dataset.create(tmp_path / "dataset")
    made.add_hardware(hardware, REFERENCE)
    return made


def append(dataset: Dataset, hardware: Hardware, measurements: list[Measurement]) -> None:
    rows = [measurement_row(one, 0, Origin.RANDOM) for one in measurements]
    dataset.append_measurements(hardware.hardware_id, rows)


def test_repeats_and_moments_are_those_of_the_records(dataset: Dataset, hardware: Hardware) -> None:
    append(dataset, hardware, [record(number) for number in range(20)])
    noise = Noise.recorded([dataset], hardware.hardware_id)
    rng = np.random.default_rng(0)
    factors = noise.factors(1000, rng)
    assert set(np.round(np.abs(np.log(factors)), 9)) == {round(REPEATED / np.sqrt(2), 9)}
    moments = [slow_down(noise.moment(rng), noise.reference) for _ in range(1000)]
    assert {round(one, 9) for one in moments} == {1.0, 2.0}
    assert np.mean(moments) == pytest.approx(1.5, abs=0.1)


def test_rough_and_failed_measurements_say_nothing(dataset: Dataset, hardware: Hardware) -> None:
    failed = Measurement(Program("w", "s", [[0, 0]]), Status.RUN_ERROR, error="no")
    append(dataset, hardware, [failed, record(1, raced=True), record(2, run_secs=(1e-4,))])
    noise = Noise.recorded([dataset], hardware.hardware_id)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(noise.factors(3, rng), np.ones(3))
    assert noise.moment(rng) == REFERENCE
