from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from costlib.tuning import networks
from costlib.tuning.networks import NetworkSet


@pytest.mark.parametrize(
    ("latency_s", "versions"),
    [
        ((1.0, 3.0, 2.0, 1.0), [[0], [3]]),
        ((1.0, 1.1, 1.2, 1.0), [[0, 1], [3]]),
        ((1.1, 1.0, 1.05, 1.0), [[1, 2], [3]]),
        ((np.inf, np.inf, np.inf, np.inf), [[0, 1], [3]]),
    ],
)
def test_versions_that_are_about_as_fast_are_timed(
    latency_s: tuple[float, ...], versions: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three versions of one network, a task each, and another network."""
    monkeypatch.setattr(networks, "_MOST_CLOSE", 2)
    nothing: Any = [None] * 4
    found = NetworkSet(nothing, nothing, [0, 0, 0, 1], nothing, np.eye(4, dtype="int64"))
    assert found.fastest(latency_s) == versions
