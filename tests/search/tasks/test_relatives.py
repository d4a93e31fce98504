"""Which tasks hand programs to which."""

from __future__ import annotations

import itertools

import polars as pl
import pytest

from costlib.hardware import Hardware
from costlib.hub.priors import SCHEMA, PriorBank, flat_extents
from costlib.schema import Origin
from costlib.search.history import TaskHistory
from costlib.search.random_search import RandomConfig
from costlib.search.run_model import RunModel
from costlib.search.strategy import Strategy
from costlib.search.tasks.relatives import Relatives, RelativesConfig
from costlib.space.program import Program
from costlib.workloads import extract_tasks

SOURCES = ("matmul 64 64 64", "matmul 128 64 64", "matmul 1024 64 16", "softmax 64 64")


@pytest.fixture(scope="module")
def started(hardware: Hardware) -> list[Strategy]:
    model = RunModel(None)
    tasks = [extract_tasks(source, hardware)[0] for source in SOURCES]
    return [RandomConfig().start(task, hardware, model) for task in tasks]


@pytest.fixture
def searches(started: list[Strategy]) -> list[Strategy]:
    for search in started:
        search.history = TaskHistory()
    return started


def measured(search: Strategy, count: int, latency_s: float) -> list[Program]:
    """Let a search have measured some programs, the first ones the fastest."""
    drawn = {p.program_id: p for p, _ in itertools.islice(search.space.sample(0), 4 * count)}
    programs = list(drawn.values())[:count]
    for number, program in enumerate(programs):
        search.history.add(program, latency_s * (1 + number), Origin.RANDOM)
    return programs


def bank_of(search: Strategy, programs: list[Program]) -> PriorBank:
    rows = [
        {
            "cluster": search.space.cluster,
            "hardware": "elsewhere",
            "name": search.task.name,
            "extents": flat_extents(shape for _, shape in search.task.arguments),
            "workload_id": search.task.workload_id,
            "sketch_id": program.sketch_id,
            "decisions": program.decisions_json(),
            "latency_s": 1.0,
            "rank": rank,
        }
        for rank, program in enumerate(programs)
    ]
    return PriorBank(pl.DataFrame(rows, schema=SCHEMA))


def test_look_alikes_hand_on_their_best_the_most_similar_one_first(
    searches: list[Strategy],
) -> None:
    near, far = measured(searches[1], 3, 1e-3), measured(searches[2], 3, 1e-3)
    measured(searches[3], 3, 1e-3)
    priors = Relatives(searches).priors(0)
    expected = [*near[:2], *far[:2]]
    assert [(p.sketch_id, p.decisions) for p in priors] == [
        (program.sketch_id, program.decisions) for program in expected
    ]


def test_a_task_of_other_sketches_is_no_help(searches: list[Strategy]) -> None:
    relatives = Relatives(searches)
    assert relatives.help(0, 1) and relatives.help(1, 0)
    assert not relatives.help(0, 3) and not relatives.help(0, 0)
    measured(searches[3], 3, 1e-3)
    assert relatives.priors(0) == []


def test_without_diffusion_tasks_of_a_run_keep_to_themselves(searches: list[Strategy]) -> None:
    measured(searches[1], 3, 1e-3)
    relatives = Relatives(searches, config=RelativesConfig(diffusion=False))
    assert not relatives.help(0, 1)
    assert relatives.priors(0) == []


def test_banks_help_a_task_of_which_nothing_ran(searches: list[Strategy]) -> None:
    programs = measured(searches[1], 2, 1e-3)
    bank = bank_of(searches[1], programs)
    searches[1].history = TaskHistory()
    known = Relatives(searches, [bank]).priors(0)
    assert [p.decisions for p in known] == [program.decisions for program in programs]
    assert Relatives(searches, [bank], RelativesConfig(bank=False)).priors(0) == []
    measured(searches[0], 1, 1e-3)
    assert Relatives(searches, [bank], RelativesConfig(diffusion=False)).priors(0) == []


def test_the_most_typical_task_of_a_cluster_comes_first(searches: list[Strategy]) -> None:
    order = Relatives(searches).typical_first()
    assert sorted(order) == [0, 1, 2, 3]
    assert order[0] == 1, "it lies between the other two"
    assert order[-1] == 3, "nothing is like it"
