"""Transfer between machines: which there are, what a minute brings, and who knows what before."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.hardware import Hardware
from costlib.models.gbdt import GbdtConfig
from costlib.training.batches import assemble
from tools.benchmarks.between_hardware import machines_of, rows_of, some_tasks, vendor_of
from tools.benchmarks.transfer import compared, records_a_second

CANARY = CanaryTimes(compute_s=1e-3, memory_s=1e-3)
GENOA, SLOWER, XEON = "AMD EPYC f25m17", "AMD EPYC f25m1", "Intel Xeon f6m207"
PER_TASK = 6
EACH_S = 12.0


def made_up(hardware: Hardware, model: str, cores: int = 2, bits: int = 256) -> Hardware:
    return hardware.model_copy(
        update={"model": model, "num_cores": cores, "vector_bits": bits, "cache_bytes": (32768,)}
    )


@pytest.fixture(scope="module")
def machines(
    measured_dataset: Dataset, hardware: Hardware, tmp_path_factory: pytest.TempPathFactory
) -> Dataset:
    """A dataset of three machines and two variants, all with the same programs."""
    folder = tmp_path_factory.mktemp("machines") / "data"
    shutil.copytree(measured_dataset.path, folder, ignore=shutil.ignore_patterns("features"))
    (folder / "hardware" / f"{hardware.hardware_id}.json").unlink()
    shutil.rmtree(folder / "measurements")
    ran = measured_dataset.scan().filter(pl.col("status") == "ok").sort("program_id").collect()
    few = ran.group_by("workload_id", maintain_order=True).head(PER_TASK).drop("hardware")
    began = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [
        row | {"measured_at": began + timedelta(seconds=EACH_S * number)}
        for number, row in enumerate(few.iter_rows(named=True))
    ]
    dataset = Dataset.create(folder)
    for one, kept in (
        (made_up(hardware, GENOA), rows),
        (made_up(hardware, XEON), rows[:-1]),
        (made_up(hardware, SLOWER), rows[:-2]),
        (made_up(hardware, GENOA, cores=1), rows),
        (made_up(hardware, GENOA, bits=128).model_copy(update={"target": {"kind": "llvm"}}), rows),
    ):
        dataset.add_hardware(one, CANARY)
        dataset.append_measurements(one.hardware_id, kept)
    return dataset


def test_machines_are_processors_with_all_cores_and_wide_vectors(machines: Dataset) -> None:
    found = machines_of(machines)
    assert [one.model for one in found.values()] == [GENOA, XEON, SLOWER]
    assert {one.num_cores for one in found.values()} == {2}
    assert [vendor_of(one) for one in found.values()] == ["AMD", "Intel", "AMD"]


def test_pauses_do_not_slow_a_machine_down(machines: Dataset, tmp_path: Path) -> None:
    name = next(iter(machines_of(machines)))
    assert records_a_second(machines, name) == pytest.approx(1 / EACH_S, rel=0.1)
    paused = Dataset.create(shutil.copytree(machines.path, tmp_path / "paused"))
    (row,) = machines.scan().filter(hardware=name).drop("hardware").head(1).collect().to_dicts()
    later = datetime(2026, 2, 1, tzinfo=UTC)
    paused.append_measurements(name, [row | {"measured_at": later}])
    assert records_a_second(paused, name) == pytest.approx(1 / EACH_S, rel=0.2)


def test_some_tasks_are_whole_and_enough(machines: Dataset) -> None:
    data = assemble(machines, hardware=[next(iter(machines_of(machines)))])
    among = ~rows_of(data, [data.tasks[0][0]])
    for programs, tasks in ((1, 1), (PER_TASK, 1), (PER_TASK + 1, 2), (1000, 2)):
        chosen = some_tasks(data, among, programs, seed=0)
        assert chosen.sum() == tasks * PER_TASK
        assert not (chosen & ~among).any()


def test_what_is_compared(machines: Dataset) -> None:
    found = compared(machines, 0, GbdtConfig(num_trees=4, min_programs_per_leaf=2))["to"]
    genoa, xeon, slower = machines_of(machines)
    assert set(found) == {genoa, xeon, slower}
    assert found[genoa]["sources"] == {"machine": [xeon, slower], "vendor": [xeon]}
    assert found[xeon]["sources"] == {"machine": [genoa, slower]}
    assert set(found[genoa]["ways"]) == {"machine", "vendor", "scratch"}
    # Of two tasks to learn from, a minute brings one; more minutes bring all there is.
    assert set(found[genoa]["ways"]["machine"]) == {"zero-shot", "1 min", "everything"}
    assert set(found[genoa]["ways"]["scratch"]) == {"1 min", "everything"}
    ways = [way for row in found.values() for each in row["ways"].values() for way in each.values()]
    for way in ways:
        low, high = way["top1_interval"]
        assert 0 < low <= way["top1"] <= high <= 1
        assert way["top1"] <= way["top5"]
