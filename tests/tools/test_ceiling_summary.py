"""What looks at the best programs say of the labels that chose them."""

from __future__ import annotations

import numpy as np
import pytest

from tools.evidence.ceiling_summary import LookedAt, summarise_ceiling

CALLS = {"one": {"a": 2, "b": 1}, "two": {"b": 3, "never looked at": 1}, "none": {"c": 1}}


def looked_at(name: str, labels: list[float], *looks: list[float]) -> LookedAt:
    return LookedAt(name, name.upper(), np.array(labels), np.array(looks))


SURE = looked_at("b", [4.0, 5.0, 6.0], *[[4.0, 5.0, 6.0]] * 3)


def test_who_knows_labels_that_are_true_reaches_one() -> None:
    found = summarise_ceiling([SURE], CALLS)
    for judged in ("ceiling", "left_out_look", "labels"):
        assert (found[judged]["top1"], found[judged]["top5"]) == (1, 1)
    assert found["noise"] == {"median": 0, "p90": 0, "largest": 0}
    assert found["truth_of_label"] == {"all": 1, "best": 1}
    assert set(found["ceiling"]["networks"]) == {"one", "two"}


def test_figures_by_hand() -> None:
    wrong = looked_at("a", [1.0, 2.0], [3.0, 2.0], [3.0, 2.0], [3.0, 2.0])
    found = summarise_ceiling([wrong, SURE], CALLS)
    one = (2 * 1 + 4) / (2 * 2 + 4)  # The truth prefers a's second, which has twice the label.
    assert found["ceiling"]["networks"]["one"] == {"top1": one, "top5": 1}
    assert found["ceiling"]["top1"] == pytest.approx((one + 1) / 2)
    turned = (2 * 2 + 4) / (2 * 3 + 4)
    assert found["labels"]["networks"]["one"]["top1"] == turned
    assert found["left_out_look"]["top1"] == 1
    assert found["truth_of_label"] == {"all": 1, "best": pytest.approx(3**0.5, abs=1e-4)}
    assert (found["tasks"], found["programs"]) == (2, 5)
    by_task = {row["task"]: row["top1"] for row in found["by_task"]}
    assert by_task == {"A": 0.5, "B": 1.0}


def test_the_noise_is_that_of_one_look() -> None:
    rng = np.random.default_rng(0)
    latency_s = np.geomspace(1, 1.5, 10) * np.exp(0.1 * rng.standard_normal((400, 10)))
    found = summarise_ceiling([LookedAt("a", "a", latency_s[0], latency_s[1:])], CALLS)
    assert found["noise"]["median"] == pytest.approx(0.1, rel=0.05)
    assert 0.8 < found["left_out_look"]["top1"] < 0.98


def test_labels_that_chose_themselves_flatter() -> None:
    """Many equal programs: the best label is a lucky one, and its truth is that of the others."""
    rng = np.random.default_rng(0)
    labels = np.sort(np.exp(0.1 * rng.standard_normal(100)))[:10]
    looks = np.exp(0.1 * rng.standard_normal((5, 10)))
    found = summarise_ceiling([LookedAt("a", "a", labels, looks)], CALLS)
    assert found["truth_of_label"]["best"] > found["truth_of_label"]["all"] > 1.05
