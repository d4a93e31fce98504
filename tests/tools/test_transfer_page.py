"""How a page shows what minutes of measuring are worth on a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.figure import Figure

from tools.evidence.pages import transfer as page


def figures(top1: float, pairs: float) -> dict[str, Any]:
    interval = [top1 - 0.1, top1 + 0.1]
    return {"top1": top1, "top1_interval": interval, "top5": 0.9, "pairwise_accuracy": pairs}


def made_up(**minutes: dict[str, Any]) -> dict[str, Any]:
    ways = {"zero-shot": figures(0.5, 0.6), **minutes, "everything": figures(0.7, 0.8)}
    scratch = {"everything": figures(0.65, 0.75)}
    row = {
        "programs": 100,
        "tasks": 5,
        "records_a_second": 2.5,
        "sources": {"machine": ["other"]},
        "ways": {"machine": ways, "scratch": scratch},
    }
    model = {"num_trees": 7}
    return {"folds": 3, "model": model, "pause_s": 60.0, "to": {"new": row}}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], str]:
    """Write the page of a result."""

    def write(result: dict[str, Any]) -> str:
        monkeypatch.setattr(page, "read_result", lambda name: result)
        return "\n".join(page.parts())

    return write


Written = Callable[[dict[str, Any]], str]


def test_minutes_bring_a_share_of_what_everything_gains(written: Written) -> None:
    text = written(made_up(**{"15 min": figures(0.65, 0.8)}))
    assert "| 0.500 | 0.650 | 0.700 | 75 % | 0.600 | 0.800 | 0.800 | 100 % |" in text
    assert "| the other machines | top-1 | 0.500 |  |  | 0.650 | 0.700 |" in text
    assert "| nothing | pairs |  |  |  |  | 0.750 |" in text


def test_a_machine_with_fewer_minutes_has_empty_cells(written: Written) -> None:
    text = written(made_up())
    assert "| new | the other machines | 0.500 |  | 0.700 |  | 0.600 |  | 0.800 |  |" in text


def test_nothing_gained_is_no_share(written: Written) -> None:
    found = made_up(**{"15 min": figures(0.6, 0.7)})
    found["to"]["new"]["ways"]["machine"]["everything"] = figures(0.5, 0.5)
    assert "| 0.500 | 0.600 | 0.500 |  | 0.600 | 0.700 | 0.500 |  |" in written(found)


def test_a_picture_for_each_machine(written: Written) -> None:
    assert "![top-1 on new](transfer-1.svg)" in written(made_up(**{"1 min": figures(0.6, 0.7)}))
    (draw,) = page.PAGE.drawn().values()
    drawn = draw()
    assert isinstance(drawn, Figure)
    labels = [text.get_text() for text in drawn.axes[0].texts]
    assert labels == ["nothing", "1 min", "everything"]
