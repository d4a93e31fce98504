"""Our builder, runner and cost model in stock MetaSchedule tuning."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from limited import limited

from costlib.hardware import Hardware
from costlib.hub import Bundle
from costlib.measure.config import MeasureConfig
from costlib.metaschedule import Builder, PretrainedCostModel, Runner
from costlib.tvm_compat import ms
from costlib.workloads import Task, load_network, prepare_network

QUICK = MeasureConfig(repeats=1, repeat_secs=0.001, max_retakes=0)


def test_in_tune_tasks(hardware: Hardware, matmul: Task, bundle: Bundle, tmp_path: Path) -> None:
    builder = Builder(hardware, QUICK)
    context = ms.TuneContext(
        mod=matmul.mod,
        target=matmul.tvm_target(),
        space_generator="post-order-apply",
        search_strategy=ms.search_strategy.EvolutionarySearch(population_size=8),
        task_name="matmul",
        rand_state=1,
        num_threads=1,
    )
    with builder.measurer:
        database = ms.tune_tasks(
            tasks=[context],
            task_weights=[1.0],
            work_dir=str(tmp_path),
            max_trials_global=4,
            num_trials_per_iter=2,
            builder=builder,
            runner=Runner(builder),
            cost_model=PretrainedCostModel(bundle, hardware),
        )
        records = database.get_all_tuning_records()
        left = [path.name for path in builder.measurer.server.folder.iterdir()]
    assert len(records) == 4
    assert all(0 < float(record.run_secs[0]) < 1 for record in records)
    assert set(left) <= {".alive"}, "artifacts are removed"


def test_in_tune_relax(hardware: Hardware, bundle: Bundle, tmp_path: Path) -> None:
    prepared = prepare_network(load_network("matmul 32 32 32"), hardware)
    builder = Builder(hardware, QUICK)
    with builder.measurer:
        database = ms.relax_integration.tune_relax(
            mod=prepared,
            params={},
            target=hardware.tvm_target(),
            work_dir=str(tmp_path),
            max_trials_global=2,
            num_trials_per_iter=2,
            builder=builder,
            runner=Runner(builder),
            cost_model=PretrainedCostModel(bundle, hardware),
            strategy=ms.search_strategy.EvolutionarySearch(population_size=8),
            seed=0,
        )
    assert len(database.get_all_tuning_records()) == 2


def test_a_machine_that_fails(hardware: Hardware, matmul: Task) -> None:
    builder = Builder(hardware, QUICK)
    with builder.measurer as measurer:
        item = ms.builder.BuilderInput(matmul.mod, matmul.tvm_target())
        result = builder.build([item])[0]
        no_room = limited(measurer.server.pid, resource.RLIMIT_FSIZE, 1 << 10)
        with no_room, pytest.raises(RuntimeError, match="ulimit -f"):
            builder.build([item])
        folder = measurer.server.folder
        folder.rename(folder.with_name("elsewhere"))
        item = ms.runner.RunnerInput(result.artifact_path, "llvm", [])
        with pytest.raises(RuntimeError, match="known to be good"):
            Runner(builder).run([item])
        folder.with_name("elsewhere").rename(folder)


def test_failed_build_and_run(hardware: Hardware, matmul: Task) -> None:
    builder = Builder(hardware, QUICK.model_copy(update={"build_timeout_secs": 0.001}))
    with builder.measurer:
        item = ms.builder.BuilderInput(matmul.mod, matmul.tvm_target())
        result = builder.build([item])[0]
        assert result.artifact_path is None
        assert "killed" in result.error_msg
        missing = ms.runner.RunnerInput("/no/such/file.so", "llvm", [])
        outcome = Runner(builder).run([missing])[0].result()
    assert outcome.run_secs is None
    assert outcome.error_msg is not None
