"""A bundle's models as functions that score the programs of a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from costlib.features.context import task_features
from costlib.features.lowered import lowered_batch
from costlib.features.schedule import schedule_batch
from costlib.features.task_encoders import schedule_encoders
from costlib.hardware import Hardware
from costlib.hub.bundle import Bundle
from costlib.hub.catalog import load_pretrained
from costlib.identity import content_id
from costlib.space.design_space import DesignSpace
from costlib.space.program import Program


class BundleScorer:
    """Scores schedules with a bundle's model.

    Parameters
    ----------
    bundle
        The bundle.
    hardware
        What the schedules are for.

    Attributes
    ----------
    name
        The bundle's name and the hash of its files.
    """

    def __init__(self, bundle: Bundle, hardware: Hardware) -> None:
        self.name = f"{bundle.name}@{content_id(bundle.manifest.files)[:8]}"
        self._model = bundle.statement_model()
        self._draft = bundle.draft
        self._hardware = hardware

    def __call__(self, space: DesignSpace, schedules: Sequence[Any]) -> np.ndarray[Any, Any]:
        """Return a float array with the score of each schedule, higher is faster."""
        if not schedules:
            return np.zeros(0)
        batch = lowered_batch(space.context, schedules, space.task.flops, self._hardware)
        return self._model.predict(batch)

    def first_look(self, space: DesignSpace, programs: Sequence[Program]) -> np.ndarray[Any, Any]:
        """Score programs by their schedules alone, without lowering them.

        Returns
        -------
        ndarray
            Float array with the score of each; zeros if the bundle has no model of schedules.
        """
        if self._draft is None or not programs:
            return np.zeros(len(programs))
        task = space.task
        encoders = schedule_encoders(
            task.name,
            [shape for _, shape in task.arguments],
            task.mod,
            {sketch.sketch_id: sketch.instructions for sketch in space.sketches},
            self._hardware,
        )
        batch = schedule_batch(
            encoders,
            [program.sketch_id for program in programs],
            [program.decisions for program in programs],
            task_features(task.flops, self._hardware),
        )
        return self._draft.predict(batch)


def load_scorer(bundle: str, hardware: Hardware) -> BundleScorer:
    """Load a bundle by name or path as a scorer."""
    return BundleScorer(load_pretrained(bundle), hardware)
