"""Shipped bundles score as they did when they were trained, whatever columns there are by now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from costlib.features.columns import ORIGINAL, TASK
from costlib.features.lowered import STORE_FEATURES
from costlib.features.task_encoder import TaskEncoder
from costlib.hardware import Hardware
from costlib.hub import Bundle, load_pretrained
from costlib.models.gbdt import GbdtModel
from costlib.space.design_space import DesignSpace
from costlib.space.directions import DIRECTIONS
from costlib.space.program import Program
from costlib.workloads import extract_tasks

NOTED: dict[str, Any] = json.loads(Path(__file__).with_name("shipped_scores.json").read_text())
"""What the costlib that trained the bundles said of some programs, to the bit."""


@pytest.fixture(scope="module", params=NOTED["bundles"])
def shipped(request: pytest.FixtureRequest) -> Bundle:
    return load_pretrained(request.param)


def test_scores_are_what_they_were(shipped: Bundle) -> None:
    hardware = Hardware.model_validate(NOTED["hardware"])
    (task,) = extract_tasks(NOTED["source"], hardware)
    space = DesignSpace(task)
    programs = [Program.from_row(task.workload_id, *row) for row in NOTED["programs"]]
    encoder = TaskEncoder.of_space(space, hardware, shipped.canary(hardware.hardware_id))
    statements = encoder.lowered(space.context, space.lower_all(programs))
    schedules = encoder.schedules(programs)
    allowed = np.ones((len(programs), len(DIRECTIONS)), bool)
    assert shipped.draft is not None
    assert shipped.directions is not None
    found = {
        "model": shipped.model.predict(statements),
        "draft": shipped.draft.predict(schedules),
        "directions": shipped.directions.probabilities(schedules, allowed),
        "gains": shipped.directions.expected_gains(schedules, allowed),
    }
    noted = NOTED["bundles"][shipped.name]
    assert {what: [float(one).hex() for one in np.ravel(s)] for what, s in found.items()} == noted


def test_they_see_the_original_columns(shipped: Bundle) -> None:
    assert isinstance(shipped.model, GbdtModel)
    names = shipped.model.columns
    if not (shipped.path / "model" / "columns.json").exists():
        assert names == ORIGINAL["statements"]
    assert shipped.model.booster.num_feature() == 4 * STORE_FEATURES + 1 + len(names)
    assert set(names) & set(TASK)
