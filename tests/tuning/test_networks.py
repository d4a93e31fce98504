from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from costlib.hardware import Hardware
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


def test_the_usual_trials_are_16_of_each_task_of_a_version(hardware: Hardware) -> None:
    source = "conv2d 1 16 14 14 32 3 pad=1"
    given = NetworkSet.load([source], hardware)
    tasks = len(given.tasks)
    assert given.usual_trials == 16 * tasks
    assert NetworkSet.load([source], hardware, layouts="all").usual_trials == 16 * tasks
    assert NetworkSet.load([source, "gelu 4 8"], hardware).usual_trials == 16 * (tasks + 1)


def test_the_usual_trials_of_ranges_are_twice_as_many(hardware: Hardware) -> None:
    batch = {0: torch.export.Dim("batch", min=1, max=9)}
    program = torch.export.export(nn.Linear(8, 8), (torch.randn(2, 8),), dynamic_shapes=(batch,))
    found = NetworkSet.load([program], hardware)
    assert len(found.networks) > 2
    main = [task for number, task in enumerate(found.tasks) if number not in found.lesser_tasks]
    assert found.usual_trials == 2 * 16 * len(main) > 0
