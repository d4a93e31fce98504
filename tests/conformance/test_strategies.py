"""What every search strategy must do, on a simulated device.

A new strategy is added to ``CONFIGS`` and nothing else. The example in CONTRIBUTING.md is held to
the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import costlib
from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.search.evolution.search import EvolutionConfig
from costlib.search.random_search import RandomConfig
from costlib.search.run_model import RunModel
from costlib.search.strategy import Strategy, StrategyConfig
from costlib.testing.simulated import SimulatedDevice, analytic
from costlib.workloads import Task, extract_tasks

EXAMPLE = "example from CONTRIBUTING.md"
CONFIGS = {
    "evolution": EvolutionConfig(population=32, generations=2, survivors=2, early_survivors=2),
    "random": RandomConfig(),
}


@pytest.fixture(params=[*CONFIGS, EXAMPLE])
def config(request: pytest.FixtureRequest) -> StrategyConfig:
    if request.param != EXAMPLE:
        return CONFIGS[request.param]
    guide = (Path(costlib.__file__).parents[1] / "CONTRIBUTING.md").read_text()
    found = re.search(r"```python\n(# hill_climbing\.py\n.*?)```", guide, re.S)
    assert found is not None
    module = ModuleType("hill_climbing")
    exec(found[1], module.__dict__)
    made: StrategyConfig = module.HillClimbingConfig()
    return made


@pytest.fixture(scope="module")
def task(hardware: Hardware) -> Task:
    return extract_tasks("matmul 64 64 64", hardware)[0]


def search(
    config: StrategyConfig, task: Task, hardware: Hardware, bundle: Bundle | None, seed: int = 0
) -> tuple[Strategy, list[str]]:
    found, device = config.start(task, hardware, RunModel(bundle), seed), SimulatedDevice(analytic)
    for _ in range(4):
        proposals = found.propose(4)
        assert len(proposals) == 4
        found.observe(proposals, device.measure(task, [p.candidate for p in proposals]))
    return found, [m.program.program_id for m in device.measured]


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_proposes_valid_programs_once(
    config: StrategyConfig, task: Task, hardware: Hardware, bundle: Bundle, warm: bool
) -> None:
    found, measured = search(config, task, hardware, bundle if warm else None)
    assert len(set(measured)) == len(measured) == 16
    assert found.history.measured == set(measured)
    assert len(found.elite) == 16
    assert found.best_s == min(latency_s for latency_s, _ in found.elite)


def test_the_seed_decides(
    config: StrategyConfig, task: Task, hardware: Hardware, bundle: Bundle
) -> None:
    _, first = search(config, task, hardware, bundle)
    _, again = search(config, task, hardware, bundle)
    _, other = search(config, task, hardware, bundle, seed=1)
    assert first == again != other


def test_goes_on_from_what_was_measured(
    config: StrategyConfig, task: Task, hardware: Hardware, bundle: Bundle
) -> None:
    found, measured = search(config, task, hardware, bundle)
    device = SimulatedDevice(analytic)
    proposals = config.start(task, hardware, RunModel(bundle)).propose(4)
    resumed = config.start(task, hardware, RunModel(bundle))
    resumed.recall(device.measure(task, [p.candidate for p in proposals]))
    assert resumed.history.measured == {p.candidate.program.program_id for p in proposals}
    assert not resumed.history.measured & {
        p.candidate.program.program_id for p in resumed.propose(4)
    }
    assert found.history.measured == set(measured)


def test_a_small_space_comes_to_an_end(config: StrategyConfig, hardware: Hardware) -> None:
    task = extract_tasks("transpose 8 8", hardware)[0]
    found, device = config.start(task, hardware, RunModel(None)), SimulatedDevice(analytic)
    for _ in range(100):
        proposals = found.propose(8)
        found.observe(proposals, device.measure(task, [p.candidate for p in proposals]))
        if found.exhausted:
            break
    assert found.exhausted
    assert len({m.program.program_id for m in device.measured}) == len(device.measured)
