"""What every search strategy must do, on a simulated device.

A new strategy is added to ``STRATEGIES`` in ``costlib/search/strategy.py`` and nothing else. The
example in CONTRIBUTING.md is held to the same.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import costlib
from costlib.errors import UnknownNameError
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.search import strategy
from costlib.search.config import SearchConfig
from costlib.search.run_model import RunModel
from costlib.search.strategy import STRATEGIES, Strategy, strategy_class
from costlib.testing.simulated import SimulatedDevice, analytic
from costlib.workloads import Task, extract_tasks

EXAMPLE = "example from CONTRIBUTING.md"
CONFIG = SearchConfig(population=32, generations=2, survivors=2, early_survivors=2)


@pytest.fixture(params=[*STRATEGIES, EXAMPLE])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    if name == EXAMPLE:
        guide = (Path(costlib.__file__).parents[1] / "CONTRIBUTING.md").read_text()
        found = re.search(r"```python\n(# costlib/search/hill_climbing\.py\n.*?)```", guide, re.S)
        assert found is not None
        module = ModuleType("costlib.search.hill_climbing")
        exec(found[1], module.__dict__)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(strategy.STRATEGIES, name, "hill_climbing:HillClimbing")
    return name


@pytest.fixture(scope="module")
def task(hardware: Hardware) -> Task:
    return extract_tasks("matmul 64 64 64", hardware)[0]


def start(kind: str, task: Task, hardware: Hardware, bundle: Bundle | None, seed: int) -> Strategy:
    return strategy_class(kind)(task, hardware, RunModel(bundle, CONFIG), CONFIG, seed)


def search(
    kind: str, task: Task, hardware: Hardware, bundle: Bundle | None, seed: int = 0
) -> tuple[Strategy, list[str]]:
    found, device = start(kind, task, hardware, bundle, seed), SimulatedDevice(analytic)
    for _ in range(4):
        proposals = found.propose(4)
        assert len(proposals) == 4
        found.observe(proposals, device.measure(task, [p.candidate for p in proposals]))
    return found, [m.program.program_id for m in device.measured]


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_proposes_valid_programs_once(
    kind: str, task: Task, hardware: Hardware, bundle: Bundle, warm: bool
) -> None:
    found, measured = search(kind, task, hardware, bundle if warm else None)
    assert len(set(measured)) == len(measured) == 16
    assert found.measured == set(measured)
    assert len(found.elite) == 16
    assert found.best_s == min(latency_s for latency_s, _ in found.elite)


def test_the_seed_decides(kind: str, task: Task, hardware: Hardware, bundle: Bundle) -> None:
    _, first = search(kind, task, hardware, bundle)
    _, again = search(kind, task, hardware, bundle)
    _, other = search(kind, task, hardware, bundle, seed=1)
    assert first == again != other


def test_goes_on_from_what_was_measured(
    kind: str, task: Task, hardware: Hardware, bundle: Bundle
) -> None:
    found, measured = search(kind, task, hardware, bundle)
    device = SimulatedDevice(analytic)
    proposals = start(kind, task, hardware, bundle, 0).propose(4)
    resumed = start(kind, task, hardware, bundle, 0)
    resumed.recall(device.measure(task, [p.candidate for p in proposals]))
    assert resumed.measured == {p.candidate.program.program_id for p in proposals}
    assert not resumed.measured & {p.candidate.program.program_id for p in resumed.propose(4)}
    assert found.measured == set(measured)


def test_a_small_space_comes_to_an_end(kind: str, hardware: Hardware) -> None:
    task = extract_tasks("transpose 8 8", hardware)[0]
    found, device = start(kind, task, hardware, None, 0), SimulatedDevice(analytic)
    for _ in range(100):
        proposals = found.propose(8)
        found.observe(proposals, device.measure(task, [p.candidate for p in proposals]))
        if found.exhausted:
            break
    assert found.exhausted
    assert len({m.program.program_id for m in device.measured}) == len(device.measured)


def test_an_unknown_strategy(task: Task, hardware: Hardware) -> None:
    with pytest.raises(UnknownNameError, match="did you mean evolution"):
        start("evolutoin", task, hardware, None, 0)
