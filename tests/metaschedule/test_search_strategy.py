"""Our strategy and scheduler in a stock MetaSchedule script."""

from __future__ import annotations

from pathlib import Path

import pytest

from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.config import MeasureConfig
from costlib.metaschedule import Builder, GradientScheduler, Runner, SearchStrategy
from costlib.search.config import SearchConfig
from costlib.search.evolution.search import EvolutionConfig
from costlib.tvm_compat import ms
from costlib.workloads import Task

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)
SMALL = SearchConfig(
    strategy=EvolutionConfig(population=32, generations=2, survivors=2, early_survivors=2)
)


@pytest.mark.parametrize("warm", [True, False], ids=["warm", "cold"])
def test_in_a_stock_script(
    hardware: Hardware, matmul: Task, dense: Task, bundle: Bundle, tmp_path: Path, warm: bool
) -> None:
    tasks = [matmul, dense]
    strategy = SearchStrategy(bundle if warm else None, hardware, SMALL)
    builder = Builder(hardware, QUICK)
    contexts = [
        ms.TuneContext(
            mod=task.mod,
            target=task.tvm_target(),
            space_generator="post-order-apply",
            search_strategy=strategy.clone(),
            task_name=task.name,
            rand_state=1,
            num_threads=1,
        )
        for task in tasks
    ]
    with builder.measurer:
        database = ms.tune_tasks(
            tasks=contexts,
            task_weights=[1.0, 2.0],
            work_dir=str(tmp_path),
            max_trials_global=16,
            num_trials_per_iter=4,
            builder=builder,
            runner=Runner(builder),
            cost_model="none",
            task_scheduler=GradientScheduler(),
        )
    records = database.get_all_tuning_records()
    assert len(records) == 16
    assert all(0 < float(record.run_secs[0]) < 1 for record in records)
    for task in tasks:
        assert database.query_tuning_record(task.mod, task.tvm_target(), "main") is not None
