"""A pretrained bundle as a cost model of MetaSchedule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from costlib.arrays import Float32s
from costlib.errors import BundleError
from costlib.features.batch import FeatureBatch, join
from costlib.features.columns import ORIGINAL
from costlib.features.lowered import lowered_batch
from costlib.features.task_context import describe_task
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.metaschedule.results import latency_s
from costlib.models.residual import CorrectedModel
from costlib.tvm_compat import ms
from costlib.tvm_compat.api import derived_object, structural_key
from costlib.workloads.task import Task


@derived_object
class PretrainedCostModel(ms.cost_model.PyCostModel):  # type: ignore[misc]
    """Scores candidates with a bundle's model, corrected by what the run measures.

    Parameters
    ----------
    bundle
        The pretrained bundle.
    hardware
        What is tuned for; this machine's CPU if not given.
    """

    def __init__(self, bundle: Bundle, hardware: Hardware | None = None) -> None:
        super().__init__()
        self._hardware = hardware or Hardware.local()
        self._canary = bundle.canary(self._hardware.hardware_id)
        self._model = CorrectedModel(bundle.statement_model())
        self._described: dict[int, Float32s] = {}
        self._task_numbers: dict[int, int] = {}
        self._batches: list[FeatureBatch] = []
        self._latency_s: list[float] = []
        self._groups: list[int] = []

    def predict(self, context: Any, candidates: list[Any]) -> np.ndarray[Any, Any]:
        """Score candidates in (0, 1), higher is faster: MetaSchedule samples by these weights."""
        if not candidates:
            return np.zeros(0)
        number = self._task_numbers.get(structural_key(context.mod))
        scores = self._model.predict(self._features(context, candidates), number)
        return 1 / (1 + np.exp(-scores))

    def update(self, context: Any, candidates: list[Any], results: list[Any]) -> None:
        """Take up measurements and refit the correction; failed ones are left out."""
        seconds = [(c, latency_s(result)) for c, result in zip(candidates, results, strict=True)]
        measured = [(candidate, found_s) for candidate, found_s in seconds if found_s is not None]
        if not measured:
            return
        self._batches.append(self._features(context, [candidate for candidate, _ in measured]))
        key = structural_key(context.mod)
        number = self._task_numbers.setdefault(key, len(self._task_numbers))
        self._latency_s += [found_s for _, found_s in measured]
        self._groups += [number] * len(measured)
        self._refit()

    def save(self, path: str) -> None:
        """Write what the run has measured (the bundle itself is not repeated) as ``.npz``."""
        if not self._batches:
            return
        batch = join(self._batches)
        np.savez(
            path,
            stores=batch.stores,
            offsets=batch.offsets,
            context=batch.context,
            columns=list(batch.names),
            latency_s=self._latency_s,
            groups=self._groups,
            tasks=list(self._task_numbers),
        )

    def load(self, path: str) -> None:
        """Read what :meth:`save` wrote and refit the correction."""
        try:
            with np.load(Path(path), allow_pickle=False) as arrays:
                names = arrays["columns"] if "columns" in arrays else ORIGINAL["statements"]
                columns = tuple(str(name) for name in names)
                batch = FeatureBatch(
                    arrays["stores"], arrays["offsets"], arrays["context"], columns
                )
                self._batches = [batch]
                self._latency_s = arrays["latency_s"].tolist()
                self._groups = arrays["groups"].tolist()
                self._task_numbers = {int(k): i for i, k in enumerate(arrays["tasks"])}
        except (OSError, EOFError, ValueError, KeyError) as error:
            reason = str(error).split(".")[0]
            raise BundleError(f"{path} is no saved cost model state: {reason}") from None
        self._refit()

    def _refit(self) -> None:
        measured_s, groups = np.asarray(self._latency_s), np.asarray(self._groups)
        self._model.refit(join(self._batches), measured_s, groups)

    def _features(self, context: Any, candidates: list[Any]) -> FeatureBatch:
        key = structural_key(context.mod)
        if key not in self._described:
            task = Task("main", context.mod, self._hardware.target)
            self._described[key] = describe_task(task, self._hardware, self._canary)
        schedules = [candidate.sch for candidate in candidates]
        return lowered_batch(context, schedules, self._described[key], self._hardware)
