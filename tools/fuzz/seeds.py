"""Something valid and small of each kind of file that :mod:`tools.fuzz` damages."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.sample import sample
from costlib.generator.fit import fit_generator
from costlib.generator.transformer import GeneratorConfig
from costlib.hub.bundle import save_bundle
from costlib.hub.collect_priors import collect_priors
from costlib.hub.manifest import HardwareEntry, TrainedOn
from costlib.logs.export import RECORDS, WORKLOADS, export_metaschedule
from costlib.measure.config import Outcome
from costlib.measure.device import Description
from costlib.models.baselines.mlp import MlpConfig, MlpModel
from costlib.models.baselines.neural import NeuralModel
from costlib.models.baselines.sequence import SequenceConfig, SequenceModel
from costlib.models.direction import DirectionConfig, DirectionModel
from costlib.models.gbdt import GbdtConfig, GbdtModel, ScheduleGbdtModel
from costlib.training.batches import assemble
from costlib.training.directions import direction_data
from costlib.training.protocol import most_measured_hardware
from costlib.workloads import load_network
from tools.evidence.files import ZOO

TREES = GbdtConfig(num_trees=3, num_leaves=4)


def seed_files(name: str, folder: Path) -> None:
    """Write something valid for a loader; what an interruption left unfinished is made again."""
    unfinished = folder.with_name(f"{name}-unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    _SEEDS[name](unfinished, _dataset(folder.parents[1]))
    unfinished.rename(folder)


def _dataset(work: Path) -> Dataset:
    path = work / "dataset"
    return Dataset.open(path) if path.exists() else sample(ZOO, path, 4, 2)


def _seed_dataset(folder: Path, dataset: Dataset) -> None:
    others = dataset.hardware().keys() - {most_measured_hardware(dataset)}
    left_out = shutil.ignore_patterns("features", "held*", *(f"*{name}*" for name in others))
    shutil.copytree(dataset.path, folder, dirs_exist_ok=True, ignore=left_out)


def _seed_bundle(folder: Path, dataset: Dataset) -> None:
    data = assemble(dataset)
    schedules = assemble(dataset, view="schedule")
    model, draft = GbdtModel(TREES), ScheduleGbdtModel(TREES)
    model.fit(data.batch, data.labels, data.groups)
    draft.fit(schedules.batch, schedules.labels, schedules.groups)
    zoo = Dataset.open(ZOO)
    explored = zoo.scan("mutations").select(pl.col("hardware").min()).collect().item()
    mutations = direction_data(zoo, explored)
    directions = DirectionModel(DirectionConfig(num_trees=2, num_leaves=3))
    directions.fit(mutations.batch, mutations.gains, mutations.groups)
    known = dataset.hardware()
    entries = [HardwareEntry(hardware=h, canary=dataset.canary(i)) for i, h in known.items()]
    save_bundle(
        folder / "bundle",
        model,
        draft=draft,
        directions=directions,
        priors=collect_priors(dataset, hardware=known),
        command="costlib train",
        seed=0,
        hardware=tuple(entries),
        trained_on=TrainedOn(dataset="x", tasks=1, programs=1, trained=("a",), held_out=("b",)),
        metrics={"top1": 0.5},
    )


def _seed_neural(kind: type[NeuralModel[Any]], folder: Path, dataset: Dataset) -> None:
    model: NeuralModel[Any] = (
        MlpModel(MlpConfig(epochs=1, width=4))
        if kind is MlpModel
        else SequenceModel(SequenceConfig(epochs=1, width=4))
    )
    data = assemble(dataset, view=model.view)
    model.fit(data.batch, data.labels, data.groups)
    model.save(folder)


def _seed_generator(folder: Path, dataset: Dataset) -> None:
    config = GeneratorConfig(width=32, layers=1, epochs=1)
    fit_generator(dataset, config=config).save(folder)


def _seed_log(folder: Path, dataset: Dataset) -> None:
    one = sample(dataset.path, folder / "one", 1, 1)
    export_metaschedule(one, folder, hardware_id=most_measured_hardware(one))
    shutil.rmtree(one.path)


def _seed_sqlite(folder: Path, dataset: Dataset) -> None:
    _seed_log(folder, dataset)
    workload, record = (json.loads((folder / f).read_text()) for f in (WORKLOADS, RECORDS))
    shutil.rmtree(folder)
    folder.mkdir()
    with closing(sqlite3.connect(folder / "log.sqlite")) as database:
        database.execute("CREATE TABLE workload (shash, mod)")
        database.execute("INSERT INTO workload VALUES (?, ?)", workload)
        database.execute("CREATE TABLE tuning_record (workload_index, trace, run_secs, target)")
        values = [record[0], *map(json.dumps, record[1][:3])]
        database.execute("INSERT INTO tuning_record VALUES (?, ?, ?, ?)", values)
        database.commit()


def _seed_steps(folder: Path, dataset: Dataset) -> None:
    """Ansor's and AutoTVM's logs, a record each."""
    ansor = {
        "i": [['["matmul_add_2", 64, 128, 32]', "llvm -keys=cpu -num-cores=4"],
              [[], [["SP", 2, 0, 64, [2, 4, 8], 1], ["PR", 2, 0, "auto_unroll_max_step$16"],
                    ["AN", 2, 0, 3], ["FU", 2, [0, 1]], ["CA", 2, 1, 1]]]],
        "r": [[0.0001, 0.0002], 0, 1.5, 1600000000], "v": "v0.6",
    }  # fmt: skip
    autotvm = {
        "input": ["llvm -keys=cpu", "conv2d_NCHWc.x86",
                  [["TENSOR", [1, 3, 32, 32], "float32"], ["TENSOR", [8, 3, 3, 3], "float32"],
                   [1, 1], [1, 1, 1, 1], [1, 1], "NCHW", "NCHW", "float32"], {}],
        "config": {"index": 3, "code_hash": None,
                   "entity": [["tile_ic", "sp", [-1, 3]], ["unroll_kw", "ot", True]]},
        "result": [[0.0001], 0, 1.2, 1600000000.0], "version": 0.2, "tvm_version": "0.8",
    }  # fmt: skip
    (folder / "database_ansor.json").write_text(json.dumps(ansor) + "\n")
    (folder / "database_autotvm.json").write_text(json.dumps(autotvm) + "\n")


def _seed_plan(folder: Path, dataset: Dataset) -> None:
    shutil.copy(ZOO.parent / "zoo.toml", folder / "plan.toml")


def _seed_messages(folder: Path, dataset: Dataset) -> None:
    """What a device of a fleet says and what it is asked."""
    (hardware, *_) = dataset.hardware().values()
    timing = {"run_secs": [1e-3], "canary_compute": [1e-3], "canary_memory": [1e-3], "raced": False}
    outcome = Outcome.model_validate({"timing": timing, "elapsed_secs": 1.0})
    description = Description(device_id="x", hardware=hardware, triple="x86_64-linux")
    job = {"kind": "run", "path": "a.so", "arguments": [["float32", [1, 2]]], "config": {}}
    for name, text in (
        ("outcome", outcome.model_dump_json()),
        ("description", description.model_dump_json()),
        ("job", json.dumps(job)),
    ):
        (folder / f"{name}.json").write_text(text)


def _seed_network(folder: Path, dataset: Dataset) -> None:
    from costlib.tvm_compat import tvm

    module = load_network("matmul 8 8 8").mod
    (folder / "network.json").write_text(tvm.ir.save_json(module))


def _seed_onnx(folder: Path, dataset: Dataset) -> None:
    import onnx
    from onnx import TensorProto, helper

    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in "xy")
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8, 8], [n / 64 for n in range(64)])
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])]
    graph = helper.make_graph(nodes, "small", [x], [y], [weights])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset), str(folder / "network.onnx"))


def _seed_torch(folder: Path, dataset: Dataset) -> None:
    import torch

    layers = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    program = torch.export.export(layers, (torch.zeros(4, 8),))
    torch.export.save(program, folder / "network.pt2")


def _seed_result(folder: Path, dataset: Dataset) -> None:
    from costlib.tuning.tune import tune

    tune("matmul 16 16 16", out=folder / "run", trials=2, bundle="none")
    shutil.copy(folder / "run" / "result.json", folder / "result.json")
    shutil.rmtree(folder / "run")


_SEEDS: dict[str, Callable[[Path, Dataset], None]] = {
    "bundle": _seed_bundle,
    "mlp": partial(_seed_neural, MlpModel),
    "sequence": partial(_seed_neural, SequenceModel),
    "generator": _seed_generator,
    "dataset": _seed_dataset,
    "plan": _seed_plan,
    "steps": _seed_steps,
    "metaschedule": _seed_log,
    "sqlite": _seed_sqlite,
    "messages": _seed_messages,
    "network": _seed_network,
    "onnx": _seed_onnx,
    "torch": _seed_torch,
    "result": _seed_result,
}
