"""Who reads what :mod:`tools.fuzz` damages.

What a loader needs is imported in it, so that its process has nothing but that: some loaders fork,
which takes the longer the more libraries there are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from costlib.errors import DatasetError, MeasureError

if TYPE_CHECKING:
    from costlib.features.batch import FeatureBatch
    from costlib.models.base import View

Load = Callable[[Path], Any]
"""Reads a folder; raises one of costlib's errors if it is damaged."""


def _load_dataset(folder: Path) -> None:
    import polars as pl

    from costlib.data.dataset import Dataset
    from costlib.data.summary import summarize
    from costlib.data.verify import verify

    verify(Dataset.open(folder))
    try:
        summarize(Dataset.open(folder))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        # Which the command line turns into one line.
        raise DatasetError(str(error).splitlines()[0]) from None


def _load_bundle(folder: Path) -> None:
    """Read it as if whoever changed it had changed the hashes, too; and score with it."""
    from costlib.hub.bundle import Bundle
    from costlib.hub.manifest import MANIFEST

    path = folder / "bundle"
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        for name in manifest["files"]:
            manifest["files"][name] = hashlib.sha256((path / name).read_bytes()).hexdigest()
        (path / MANIFEST).write_text(json.dumps(manifest))
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        pass  # The manifest itself is what was changed.
    bundle = Bundle.load(path)
    few = _some_programs(folder.parent, "statements")
    if bundle.model.view == "statements":
        assert len(bundle.model.predict(few)) == len(few)
    if bundle.priors is not None:
        bundle.priors.nearest("x", [1, 2], 3)


def _load_mlp(folder: Path) -> None:
    from costlib.models.baselines.mlp import MlpModel

    MlpModel.load(folder).predict(_some_programs(folder.parent, MlpModel.view))


def _load_sequence(folder: Path) -> None:
    from costlib.models.baselines.sequence import SequenceModel

    SequenceModel.load(folder).predict(_some_programs(folder.parent, SequenceModel.view))


def _load_generator(folder: Path) -> None:
    from costlib.features.version import LANGUAGE_VERSION
    from costlib.generator.model import Generator

    generator = Generator.load(folder, LANGUAGE_VERSION)
    rng = np.random.default_rng(0)
    generator.generate([1, 2], [3, None], lambda _, tokens: np.ones((len(tokens), 1), bool), 1, rng)


def _load_plan(folder: Path) -> None:
    from costlib.collecting.plan import load_plan

    load_plan(folder / "plan.toml")


def _load_log(folder: Path) -> None:
    from costlib.logs.importers import import_logs

    import_logs([folder], folder / "imported")


def _load_messages(folder: Path) -> None:
    """Parse them as link, client and device do, whose own errors these are."""
    from costlib.measure.config import Outcome
    from costlib.measure.device import Description, job_of

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


def _load_network(folder: Path) -> None:
    """TVM's JSON, an ONNX model or a program of PyTorch, whichever is there."""
    from costlib.workloads import load_network

    (file,) = folder.glob("network.*")
    load_network(file)


def _load_result(folder: Path) -> None:
    from costlib.tuning.result import read_result

    read_result(folder)


@cache
def _some_programs(work: Path, view: View) -> FeatureBatch:
    """Return three programs of the sample of a dataset that the valid files were made from."""
    from costlib.data.dataset import Dataset
    from costlib.features.batch import select
    from costlib.training.batches import assemble

    data = assemble(Dataset.open(work / "dataset"), view=view)
    return select(data.batch, np.arange(len(data.labels)) < 3)


LOADERS: dict[str, Load] = {
    "bundle": _load_bundle,
    "mlp": _load_mlp,
    "sequence": _load_sequence,
    "generator": _load_generator,
    "dataset": _load_dataset,
    "plan": _load_plan,
    "steps": _load_log,
    "metaschedule": _load_log,
    "sqlite": _load_log,
    "messages": _load_messages,
    "network": _load_network,
    "onnx": _load_network,
    "torch": _load_network,
    "result": _load_result,
}
