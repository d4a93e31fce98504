"""What fuzz.py reads: for each kind of file something valid and small, and who reads it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.export import export_metaschedule
from costlib.data.importers import import_logs
from costlib.data.plan import load_plan
from costlib.data.sample import sample
from costlib.data.summary import summarize
from costlib.data.verify import verify
from costlib.errors import DatasetError, MeasureError
from costlib.features.batch import FeatureBatch, select
from costlib.features.version import LANGUAGE_VERSION
from costlib.hub.bundle import MANIFEST, Bundle, HardwareEntry, TrainedOn, save_bundle
from costlib.hub.collect_priors import collect_priors
from costlib.measure.config import Outcome
from costlib.measure.device import Description, job_of
from costlib.models.base import View
from costlib.models.direction import DirectionConfig, DirectionModel
from costlib.models.gbdt import GbdtConfig, GbdtModel, ScheduleGbdtModel
from costlib.models.generator import Generator
from costlib.models.mlp import MlpConfig, MlpModel
from costlib.models.neural import NeuralModel
from costlib.models.sequence import SequenceConfig, SequenceModel
from costlib.models.transformer import GeneratorConfig
from costlib.training.assemble import assemble
from costlib.training.directions import direction_data
from costlib.training.generator import fit_generator
from costlib.training.protocol import most_measured_hardware
from costlib.workloads import load_network

ZOO = Path(__file__).parents[1] / "datasets" / "zoo"
TREES = GbdtConfig(num_trees=3, num_leaves=4)

Load = Callable[[Path], Any]
"""Reads a folder; raises one of costlib's errors if it is damaged."""


def seed_files(name: str, folder: Path) -> None:
    """Write something valid for a loader."""
    folder.mkdir(parents=True)
    _SEEDS[name](folder, _dataset(folder.parents[1]))


def _dataset(work: Path) -> Dataset:
    path = work / "dataset"
    return Dataset.open(path) if path.exists() else sample(ZOO, path, 4, 2)


@cache
def some_programs(work: Path, view: View) -> FeatureBatch:
    """Return three programs to be scored."""
    data = assemble(_dataset(work), view=view)
    return select(data.batch, np.arange(len(data.labels)) < 3)


def _seed_dataset(folder: Path, dataset: Dataset) -> None:
    shutil.copytree(
        dataset.path, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("features", "held*")
    )


def _seed_bundle(folder: Path, dataset: Dataset) -> None:
    hardware_id = most_measured_hardware(dataset)
    data = assemble(dataset)
    schedules = assemble(dataset, view="schedule")
    model, draft = GbdtModel(TREES), ScheduleGbdtModel(TREES)
    model.fit(data.batch, data.labels, data.groups)
    draft.fit(schedules.batch, schedules.labels, schedules.groups)
    mutations = direction_data(Dataset.open(ZOO), hardware_id, None)
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


def _seed_neural(kind: type[NeuralModel], folder: Path, dataset: Dataset) -> None:
    model: NeuralModel = (
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


def _seed_result(folder: Path, dataset: Dataset) -> None:
    from costlib.search.tune import tune

    tune("matmul 16 16 16", out=folder / "run", trials=2, bundle="none")
    shutil.copy(folder / "run" / "result.json", folder / "result.json")
    shutil.rmtree(folder / "run")


def _load_dataset(folder: Path) -> None:
    verify(Dataset.open(folder))
    try:
        summarize(Dataset.open(folder))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        # Which the command line turns into one line.
        raise DatasetError(str(error).splitlines()[0]) from None


def _load_bundle(folder: Path) -> None:
    """Read it as if whoever changed it had changed the hashes, too; and score with it."""
    path = folder / "bundle"
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        for name in manifest["files"]:
            manifest["files"][name] = hashlib.sha256((path / name).read_bytes()).hexdigest()
        (path / MANIFEST).write_text(json.dumps(manifest))
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        pass  # The manifest itself is what was changed.
    bundle = Bundle.load(path)
    few = some_programs(folder.parent, "statements")
    if bundle.model.view == "statements":
        assert len(bundle.model.predict(few)) == len(few)
    if bundle.priors is not None:
        bundle.priors.nearest("x", [1, 2], 3)


def _load_neural(kind: type[NeuralModel], folder: Path) -> None:
    kind.load(folder).predict(some_programs(folder.parent, kind.view))


def _load_generator(folder: Path) -> None:
    generator = Generator.load(folder, LANGUAGE_VERSION)
    rng = np.random.default_rng(0)
    generator.generate([1, 2], [3, None], lambda _, tokens: np.ones((len(tokens), 1)), 1, rng)


def _load_log(folder: Path) -> None:
    import_logs([folder], folder / "imported")


def _load_messages(folder: Path) -> None:
    """Parse them as link, client and device do, whose own errors these are."""
    readers: dict[str, Callable[[str], Any]] = {
        "outcome": Outcome.model_validate_json,
        "description": Description.model_validate_json,
        "job": job_of,
    }
    for name, read in readers.items():
        try:
            read((folder / f"{name}.json").read_bytes())  # type: ignore[arg-type]
        except ValueError as error:
            raise MeasureError(str(error).splitlines()[0]) from None


def _load_result(folder: Path) -> None:
    from costlib.report.run import read_result

    read_result(folder)


LOADERS: dict[str, Load] = {
    "bundle": _load_bundle,
    "mlp": partial(_load_neural, MlpModel),
    "sequence": partial(_load_neural, SequenceModel),
    "generator": _load_generator,
    "dataset": _load_dataset,
    "plan": lambda folder: load_plan(folder / "plan.toml"),
    "steps": _load_log,
    "metaschedule": _load_log,
    "messages": _load_messages,
    "network": lambda folder: load_network(folder / "network.json"),
    "result": _load_result,
}

_SEEDS: dict[str, Callable[[Path, Dataset], None]] = {
    "bundle": _seed_bundle,
    "mlp": partial(_seed_neural, MlpModel),
    "sequence": partial(_seed_neural, SequenceModel),
    "generator": _seed_generator,
    "dataset": _seed_dataset,
    "plan": _seed_plan,
    "steps": _seed_steps,
    "metaschedule": _seed_log,
    "messages": _seed_messages,
    "network": _seed_network,
    "result": _seed_result,
}
