from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from costlib.data.dataset import Dataset
from costlib.hub import Bundle
from costlib.models.training_curve import listening, recording, tell
from costlib.training.fit import fit_model
from costlib.training.metrics import calibrate_pairs


@pytest.mark.parametrize("sure", [0.5, 1.0, 3.0])
def test_pairs_are_as_often_right_as_expected(sure: float) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4000), 2)
    scores = rng.normal(size=len(groups))
    first_is_faster = rng.random(4000) < expit(scores[::2] - scores[1::2])
    latency_s = np.stack([np.where(first_is_faster, 1.0, 2.0), np.full(4000, 1.5)], 1).flatten()
    found = calibrate_pairs(sure * scores, latency_s, groups)
    error = np.subtract(found.expected, found.observed)
    if sure == 1:
        assert np.abs(error).max() < 0.07
    else:
        assert np.sign(error.mean()) == np.sign(sure - 1)


def test_nothing_to_compare() -> None:
    assert calibrate_pairs(np.ones(4), np.arange(1.0, 5), np.zeros(4, "int64")).expected == ()


def test_curves_are_kept_passed_on_and_shortened() -> None:
    heard: list[float] = []
    with listening(lambda name, step, value: heard.append(value)):
        with recording() as curves:
            for step in range(1000):
                tell("loss", step, step / 2)
            tell("top1", 3, 0.5)
        tell("loss", 1000, 0.0)
    assert len(heard) == 1002
    assert curves["top1"] == [(3, 0.5)]
    assert len(curves["loss"]) == 64
    assert curves["loss"][-1][0] == 999
    values = [value for _, value in curves["loss"]]
    assert values == sorted(values)


def test_training_tells_how_it_went(measured_dataset: Dataset, bundle: Bundle) -> None:
    with recording() as curves:
        fitted = fit_model(measured_dataset, held_out_share=0.3)
    steps, values = zip(*curves["gbdt/pairwise_accuracy"], strict=True)
    assert steps[0] == 1 and list(steps) == sorted(steps)
    assert values[-1] == pytest.approx(fitted.metrics.pairwise_accuracy)
    assert len(fitted.calibration.expected) > 1
    assert set(bundle.manifest.metrics["curves"]) == {
        f"{kind}/{figure}"
        for kind in ("gbdt", "gbdt-schedules")
        for figure in ("top1", "pairwise_accuracy")
    }
