from __future__ import annotations

import functools

import numpy as np

from costlib.features.batch import FeatureBatch, concatenate
from costlib.models.baselines.ensemble import EnsembleConfig, EnsembleModel


def data(tasks: int, noise: float, seed: int) -> tuple[FeatureBatch, np.ndarray, np.ndarray]:
    """Programs whose latency depends on one feature, more or less."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(tasks), 40)
    stores = rng.normal(size=(len(groups), 1, 4)).astype("float32")
    log_latency = stores[:, 0, 0] + noise * rng.normal(size=len(groups))
    labels = np.exp(-log_latency)
    for task in range(tasks):
        labels[groups == task] /= labels[groups == task].max()
    return concatenate(list(stores), np.zeros((len(groups), 1), "float32")), labels, groups


@functools.cache
def fitted(noise: float) -> EnsembleModel:
    model = EnsembleModel(EnsembleConfig(members=("gbdt", "gbdt-statements")))
    model.fit(*data(16, noise, seed=0))
    return model


def test_the_uncertainty_covers_the_errors() -> None:
    model = fitted(noise=0.3)
    batch, labels, groups = data(12, 0.3, seed=1)
    scores, sigma = model.predict_with_uncertainty(batch)
    target = np.log(labels)
    for task in range(12):
        chosen = groups == task
        scores[chosen] -= scores[chosen].mean()
        target[chosen] -= target[chosen].mean()
    errors = scores - (scores @ target) / (target @ target) * target
    covered = (np.abs(errors) < sigma).mean()
    assert 0.55 < covered < 0.85, "a Gaussian's sigma covers 0.68"


def test_noisier_data_is_less_certain() -> None:
    batch, _, _ = data(4, 0.0, seed=2)
    calm, noisy = (fitted(noise).predict_with_uncertainty(batch)[1].mean() for noise in (0.05, 0.3))
    assert noisy > calm > 0
