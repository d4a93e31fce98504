"""How a page shows the ceiling, and what it says where that was not measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tools.evidence.ceiling_summary import LookedAt, summarise_ceiling
from tools.evidence.pages import ceiling as page
from tools.evidence.pages import headlines
from tools.evidence.pages.ranking import BUNDLES, manifest

METRICS = {"tasks": 1, "hardware": "a-cpu", "top1": 0.4, "top5": 0.9}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A result in which the truth prefers a program of 1.25 times the best label."""
    task = LookedAt("a", "conv2d", np.array([1.0, 1.25]), np.array([[3.0, 2.0], [3.0, 2.0]]))
    settings = {"hardware": "a-cpu", "top": 2, "looks": 2, "minutes_from_first_to_last": 9.5}
    result = settings | {"left_out": 0} | summarise_ceiling([task], {"net": {"a": 1}})
    monkeypatch.setattr(page, "read_result", lambda name: {"ceiling": result}[name])
    return result


def test_a_bundle_is_stated_as_a_share_of_the_ceiling(found: dict[str, Any]) -> None:
    assert found["ceiling"]["top1"] == 0.8
    assert page.share_of_ceiling(METRICS, "top1") == pytest.approx(0.5)
    text = "\n".join(page.ceiling({"`mine`": METRICS}))
    assert "| `mine` | 0.400 | 50.0 % | 0.900 | 90.0 % |" in text
    assert "| `net` | 0.800 | 1.000 |" in text
    assert "2 best programs of each of 1 held-out tasks" in text


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize("other", [{"tasks": 91}, {"hardware": "another"}])
def test_no_share_of_a_ceiling_of_other_tasks_or_hardware(other: dict[str, Any]) -> None:
    assert page.share_of_ceiling(METRICS | other, "top1") is None
    assert "no model is stated as a share" in "\n".join(page.ceiling({"`x`": METRICS | other}))


def test_a_ceiling_that_was_not_measured_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "read_result", lambda name: {})
    heading, text = page.ceiling({"`mine`": METRICS})
    assert heading == "## How good can a ranking be?"
    assert "has not been measured yet: `python -m tools.benchmarks.ceiling`" in text
    assert page.share_of_ceiling(METRICS, "top1") is None


def test_the_headline_has_the_share_beside(
    found: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = manifest(BUNDLES[0])["metrics"]
    found |= {"tasks": shipped["tasks"], "hardware": shipped["hardware"]}
    first, beside = headlines._ranking()
    assert beside.figure == f"{shipped['top1'] / 0.8:.2f}x"
    assert (first.page, beside.page) == ("ranking", "ranking")
    monkeypatch.setattr(page, "read_result", lambda name: {})
    assert headlines._ranking() == [first]
