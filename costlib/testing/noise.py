"""How much measurements of one program differ, as the records of a dataset show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from costlib.arrays import Floats
from costlib.canary_times import CanaryTimes
from costlib.data.dataset import Dataset
from costlib.measure.correction import slow_down
from costlib.schema import Status

_FEWEST_REPEATS = 2


@dataclass(frozen=True)
class Noise:
    """What is not the program's doing when it is measured.

    Attributes
    ----------
    reference
        What the canaries take in the reference state.
    repeats
        float64 `r`: logarithms of what repeats differ by after correction, each scaled to the share
        of one of the two.
    canaries
        float64 `m x 2`: what the compute and the memory canary took beside records.
    """

    reference: CanaryTimes
    repeats: Floats
    canaries: Floats

    @classmethod
    def recorded(cls, datasets: Sequence[Dataset], hardware_id: str) -> Noise:
        """Take it from the records that were repeated and had canaries; without any, there is none.

        Two repeats follow each other within a second, so what changes more slowly, and is not seen
        by the canaries, is missing.
        """
        known = (dataset.canary(hardware_id) for dataset in datasets)
        reference = next(filter(None, known), CanaryTimes(compute_s=1e-3, memory_s=1e-3))
        differences, canaries = [], []
        for dataset in datasets:
            for run_secs, compute, memory in _repeated(dataset, hardware_id):
                moments = [
                    CanaryTimes(compute_s=one, memory_s=other)
                    for one, other in zip(compute, memory, strict=True)
                ]
                first, second = (
                    np.log(secs / slow_down(moment, reference))
                    for secs, moment in zip(run_secs[:2], moments[:2], strict=True)
                )
                differences += [first - second, second - first]
                canaries.append((min(compute), min(memory)))
        if not canaries:
            return cls(
                reference, np.zeros(1), np.array([[reference.compute_s, reference.memory_s]])
            )
        return cls(reference, np.array(differences) / np.sqrt(2), np.array(canaries))

    def factors(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw by how much `count` repeats of a program miss what it takes; float64 `count`."""
        return np.asarray(np.exp(rng.choice(self.repeats, count)))

    def moment(self, rng: np.random.Generator) -> CanaryTimes:
        """Draw what the canaries take while a program runs."""
        compute_s, memory_s = self.canaries[rng.integers(len(self.canaries))].tolist()
        return CanaryTimes(compute_s=compute_s, memory_s=memory_s)


def _repeated(
    dataset: Dataset, hardware_id: str
) -> list[tuple[list[float], list[float], list[float]]]:
    repeats = [pl.col(name).list.len() for name in ("run_secs", "canary_compute", "canary_memory")]
    return (
        dataset.scan()
        .filter((pl.col("hardware") == hardware_id) & (pl.col("status") == str(Status.OK)))
        .filter(~pl.col("raced") & pl.all_horizontal(n >= _FEWEST_REPEATS for n in repeats))
        .select("run_secs", "canary_compute", "canary_memory")
        .collect()
        .rows()
    )
