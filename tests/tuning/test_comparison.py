"""A compiled network beside the untuned one and PyTorch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from costlib.errors import MeasureError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.schema import CanaryTimes
from costlib.tuning import comparison
from costlib.tuning.comparison import compare
from costlib.tuning.compiled import CompiledNetwork
from costlib.workloads import load_network, prepare_network

SOURCE, OTHER = "dense 16 16 16 bias=1 relu=1", "dense 16 16 16 bias=1"


@pytest.fixture(scope="module")
def measurer(hardware: Hardware) -> Iterator[Measurer]:
    reference = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
    with Measurer(hardware, MeasureConfig(repeats=1, repeat_secs=0.001), reference) as found:
        yield found


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory, hardware: Hardware) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("libraries")
    found = {}
    for number, source in enumerate((SOURCE, OTHER)):
        found[source] = folder / f"{number}.so"
        prepared = prepare_network(load_network(source), hardware)
        CompiledNetwork.build(prepared, hardware).save(found[source])
    return found


def test_the_same_network_computes_the_same(measurer: Measurer, libraries: dict[str, Path]) -> None:
    network = load_network(SOURCE)
    figures = compare(network, libraries[SOURCE], libraries[SOURCE], measurer, 0)
    assert figures.max_abs_error < 1e-4 * max(figures.max_abs_output, 1.0)
    assert figures.latency_before_s > 0 and figures.latency_after_s > 0
    assert figures.pytorch_latency_s is not None and figures.pytorch_latency_s > 0


def test_another_network_is_seen_to_compute_something_else(
    measurer: Measurer, libraries: dict[str, Path]
) -> None:
    network = load_network(SOURCE)
    figures = compare(network, libraries[SOURCE], libraries[OTHER], measurer, 0)
    assert figures.max_abs_error > 0.1, "negative values are not cut off"


def test_without_pytorch_the_untuned_network_is_the_measure(
    measurer: Measurer, libraries: dict[str, Path]
) -> None:
    network = load_network(SOURCE)
    network = type(network)(**{**vars(network), "reference": None})
    figures = compare(network, libraries[OTHER], libraries[SOURCE], measurer, 0)
    assert figures.pytorch_latency_s is None
    assert figures.max_abs_error > 0.1


def test_a_library_that_does_not_run_is_an_error(
    measurer: Measurer, libraries: dict[str, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    with pytest.raises(MeasureError, match=r"broken\.so does not run"):
        compare(load_network(SOURCE), libraries[SOURCE], broken, measurer, 0)


def test_what_is_no_number_is_off_without_bound() -> None:
    assert comparison._largest(np.array([1.0, math.nan])) == math.inf
    assert comparison._largest(np.array([-3.0, 2.0])) == 3.0
    assert comparison._largest(np.zeros(0)) == 0.0
