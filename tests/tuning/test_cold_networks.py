"""A network whose weights exceed the last cache is tuned as it will run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from costlib.data.dataset import Dataset
from costlib.data.parts import list_parts, read_table, write_part
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.hub.priors import SCHEMA, flat_extents
from costlib.measure.config import MeasureConfig
from costlib.schema import CacheState
from costlib.space.design_space import DesignSpace
from costlib.tuning.config import TuneConfig
from costlib.tuning.memory import Memory
from costlib.tuning.networks import NetworkSet
from costlib.tuning.result import TuneResult
from costlib.tuning.tune import tune
from costlib.workloads import Task

SOURCE = "dense 1 256 512"
COLD = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0, cold_weights=True)
WEIGHTS = 4 * 256 * 512


@pytest.fixture
def small(hardware: Hardware) -> Hardware:
    """This machine, with a last cache that is smaller than the network's weights."""
    return hardware.model_copy(update={"cache_bytes": (1 << 15, WEIGHTS - 1)})


def test_the_largest_network_of_a_task_counts(small: Hardware) -> None:
    networks = NetworkSet.load([SOURCE, "dense 1 64 256"], small)
    states = {t.arguments[1][1]: t.cache for t in networks.as_called(small, COLD).tasks}
    assert list(states.values()) == [CacheState.COLD_WEIGHTS, CacheState.WARM]
    assert not networks.has_cold_weights
    assert networks.as_called(small, COLD).has_cold_weights
    assert networks.as_called(small, MeasureConfig()).has_cold_weights
    warm = MeasureConfig(cold_weights=False)
    assert not networks.as_called(small, warm).has_cold_weights
    larger = small.model_copy(update={"cache_bytes": (1 << 15, WEIGHTS)})
    assert not networks.as_called(larger, COLD).has_cold_weights
    together = replace(networks, calls=np.ones((2, 2), "int64"))
    assert all(t.cache is CacheState.COLD_WEIGHTS for t in together.as_called(small, COLD).tasks)


def test_the_state_is_part_of_what_a_run_notes(small: Hardware, tmp_path: Path) -> None:
    def run(measure: MeasureConfig, folder: str, resume: bool = False) -> TuneResult:
        config = TuneConfig(measure=measure, memory=tmp_path / "memory")
        return tune(
            *(SOURCE,),
            out=tmp_path / folder,
            trials=3 if resume else 2,
            bundle="none",
            hardware=small,
            config=config,
            resume=resume,
        )

    assert run(COLD, "cold").trials == 2
    noted = Dataset.open(tmp_path / "cold" / "trials").scan().collect()
    assert set(noted["cache"]) == {"cold_weights"}
    assert run(COLD, "cold", resume=True).trials == 3
    warm = COLD.model_copy(update={"cold_weights": False})
    with pytest.raises(InputError, match=r"holds a run of .*cold_weights"):
        run(warm, "cold", resume=True)
    run(warm, "warm")
    run(COLD, "warm", resume=True)  # As any run of a version that measured so alone.
    noted = Dataset.open(tmp_path / "warm" / "trials").scan().collect()
    assert set(noted["cache"]) == {"warm"}
    kept = [pl.DataFrame(read_table(part)) for part in list_parts(tmp_path / "memory")]
    assert [set(part["cache"]) for part in kept] == [
        {"cold_weights"},
        {"cold_weights"},
        *[{"warm"}] * 2,
    ]


def test_what_is_remembered_of_one_state_does_not_hide_the_other(
    dense: Task, tmp_path: Path
) -> None:
    memory = Memory(tmp_path)
    space = DesignSpace(dense)
    row = {
        "cluster": space.cluster,
        "hardware": "here",
        "name": dense.name,
        "extents": flat_extents(shape for _, shape in dense.arguments),
        "workload_id": dense.workload_id,
        "sketch_id": "sketch",
    }

    def remember(latencies_s: list[float], **more: str) -> None:
        rows = [
            {**row, "decisions": f"[{s}]", "latency_s": s, "rank": rank, **more}
            for rank, s in enumerate(latencies_s)
        ]
        schema = SCHEMA if not more else pl.Schema({**SCHEMA, "cache": pl.String()})
        table = pl.DataFrame(rows, schema=schema).to_arrow()
        write_part(tmp_path, table, table.schema, tmp_path / ".unfinished")

    remember([1.0, 2.0, 3.0, 4.0])
    remember([5.0, 6.0, 7.0], cache="cold_weights")
    remember([1.5], cache="warm")
    bank = memory.bank().table
    assert bank.schema == SCHEMA
    ranked = bank.sort("latency_s").select("latency_s", "rank").rows()
    warm = [(1.0, 0), (1.5, 1), (2.0, 2), (3.0, 3)]
    assert ranked == [*warm, (5.0, 0), (6.0, 1), (7.0, 2)]
