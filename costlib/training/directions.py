"""The mutation records of a dataset as arrays, and how well directions are told apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from costlib.arrays import Bools, Floats, Integers
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.features.batch import FeatureBatch, join, select
from costlib.frozen import Frozen
from costlib.models.direction import DirectionModel
from costlib.schema import CacheState
from costlib.space.directions import DIRECTIONS, stock_probabilities
from costlib.training.batches import Chosen, among, most_frequent_hardware, schedule_describer

_LEAST_PAIRS = 20
"""Measured pairs that it takes to bring differences of scores to the scale of speed-ups."""

_JUDGED_EVERY = 5
_LEAST_PROGRAMS = 20
"""A classifier of fewer says nothing."""


@dataclass(frozen=True)
class DirectionData:
    """`n` programs that were changed in every direction.

    Attributes
    ----------
    batch
        The programs as schedules.
    gains
        float64 `n x d`: log of the speed-up by a mutation in each of
        :data:`costlib.space.directions.DIRECTIONS`; NaN where there was none.
    measured
        bool `n x d`: whether it was measured; otherwise it is what the cost model's scores
        promise, scaled by what was measured.
    groups
        int64 `n`: index into ``tasks``.
    tasks
        Workload ids.
    """

    batch: FeatureBatch
    gains: Floats
    measured: Bools
    groups: Integers
    tasks: list[str]

    def of(self, rows: Bools) -> DirectionData:
        """Return some of the programs, those where bool `n` is true."""
        return DirectionData(
            select(self.batch, rows),
            self.gains[rows],
            self.measured[rows],
            self.groups[rows],
            self.tasks,
        )

    @property
    def comparable(self) -> Bools:
        """Whether a program was changed in two directions or more, bool `n`."""
        return np.asarray((~np.isnan(self.gains)).sum(1) >= 2)


class DirectionMetrics(Frozen):
    """How well directions were chosen for programs of unseen tasks.

    Attributes
    ----------
    programs
        How many.
    accuracy, stock_accuracy, chance
        How often the likeliest direction was the best one: by the model, by stock's fixed
        probabilities, by picking one at random.
    gain, stock_gain, best_gain
        Mean log of the speed-up in the direction with the highest expected gain, in stock's random
        direction, and in the best direction.
    calibration_error
        Mean difference between the probability of the likeliest direction and how often it was
        the best, over ten bins of that probability.
    """

    programs: int
    accuracy: float
    stock_accuracy: float
    chance: float
    gain: float
    stock_gain: float
    best_gain: float
    calibration_error: float


def direction_data(dataset: Dataset, hardware_id: str, only: Chosen = None) -> DirectionData:
    """Read the mutation records of one hardware; ``only`` those of some workloads, by their ids.

    Raises
    ------
    DatasetError
        There are none.
    """
    table = _family_table(dataset, hardware_id, only)
    if table.is_empty():
        raise DatasetError(
            f"{dataset.path} has no mutation records of {hardware_id}; "
            "collect them with a plan, see [mutations]"
        )
    families = pl.struct("workload_id", "parent_id")
    spots = (
        table.select(families.rle_id()).to_series().to_numpy(),
        [DIRECTIONS.index(direction) for direction in table["direction"]],
    )
    parents = table.filter(families.is_first_distinct()).with_columns(decisions="parent_decisions")
    gains = np.full((len(parents), len(DIRECTIONS)), np.nan)
    gains[spots] = _gain(table).to_numpy()
    measured = np.zeros(gains.shape, bool)
    measured[spots] = table["seen"].to_numpy()
    describe, machine = schedule_describer(dataset), dataset.hardware()[hardware_id]
    tasks = parents["workload_id"].unique(maintain_order=True).to_list()
    by_task = parents.partition_by("workload_id", maintain_order=True)
    batches = [describe(one, machine, rows) for one, rows in zip(tasks, by_task, strict=True)]
    groups = parents["workload_id"].rle_id().to_numpy().astype("int64")
    return DirectionData(join(batches), gains, measured, groups, tasks)


def fit_directions(
    dataset: Dataset, *, hardware: Chosen = None, only: Chosen = None, seed: int = 0
) -> tuple[DirectionModel, DirectionMetrics] | None:
    """Train on the hardware with the most mutation records, ``None`` if there are too few.

    Parameters
    ----------
    dataset, only
        See :func:`direction_data`.
    hardware
        Ids of the hardware to choose from; all if not given.
    seed
        Of the trees.

    Returns
    -------
    model, metrics
        The model has seen all tasks; the metrics are those of a model that was not shown every
        fifth of them, on these.
    """
    hardware_id = most_frequent_hardware(dataset.scan("mutations"), hardware)
    if hardware_id is None:
        return None
    data = direction_data(dataset, hardware_id, only)
    judged = data.groups % _JUDGED_EVERY == _JUDGED_EVERY - 1
    seen, unseen = data.of(~judged), data.of(judged)
    if min(seen.comparable.sum(), unseen.comparable.sum()) < _LEAST_PROGRAMS:
        return None
    partial, model = DirectionModel(), DirectionModel()
    for one, shown in ((partial, seen), (model, data)):
        one.fit(shown.batch, shown.gains, shown.groups, seed=seed)
    return model, evaluate_directions(partial, unseen)


def evaluate_directions(model: DirectionModel, data: DirectionData) -> DirectionMetrics:
    """Compare a model's directions with stock's, on programs it has not seen."""
    known, rows = ~np.isnan(data.gains), data.comparable
    gains, allowed = data.gains[rows], known[rows]
    every = np.arange(len(gains))
    best = np.nanargmax(gains, 1)
    chances = model.probabilities(data.batch, known)[rows]
    expected = np.where(allowed, model.expected_gains(data.batch, known)[rows], -np.inf)
    stock = stock_probabilities(allowed)
    likeliest = chances.argmax(1)
    return DirectionMetrics(
        programs=len(gains),
        accuracy=float((likeliest == best).mean()),
        stock_accuracy=float((stock.argmax(1) == best).mean()),
        chance=float((1 / allowed.sum(1)).mean()),
        gain=float(gains[every, expected.argmax(1)].mean()),
        stock_gain=float((stock * np.nan_to_num(gains)).sum(1).mean()),
        best_gain=float(gains[every, best].mean()),
        calibration_error=_calibration_error(chances[every, likeliest], likeliest == best),
    )


def _family_table(dataset: Dataset, hardware_id: str, only: Chosen) -> pl.DataFrame:
    """A row for each child: the difference of scores, and the speed-up where it was measured."""
    here = pl.col("hardware") == hardware_id
    programs = (
        dataset.scan()
        .filter(here & (pl.col("cache") == str(CacheState.WARM)))
        .group_by("program_id")
        .agg(pl.col("decisions").first(), pl.col("latency_s").median())
    )
    names = {"program_id": "parent_id"}
    names |= {column: f"parent_{column}" for column in ("decisions", "latency_s")}
    children = dataset.scan("mutations").filter(here & pl.col("child_score").is_not_null())
    return (
        among(children, "workload_id", only)
        .join(programs.select("program_id", "latency_s"), on="program_id", how="left")
        .join(programs.rename(names), on="parent_id", how="inner")
        .with_columns(
            speed_up=(pl.col("parent_latency_s") / pl.col("latency_s")).log(),
            score_gain=pl.col("child_score") - pl.col("parent_score"),
        )
        .with_columns(seen=pl.col("speed_up").is_not_null())
        .sort("workload_id", "parent_id", "direction", "seen", "program_id")
        .collect()
    )


def _gain(table: pl.DataFrame) -> pl.Series:
    """The speed-up where it was measured; else the difference of scores, on its scale."""
    pairs = table.filter("seen")
    scale = 1.0
    if len(pairs) >= _LEAST_PAIRS:
        score, speed_up = pairs["score_gain"].to_numpy(), pairs["speed_up"].to_numpy()
        scale = float(score @ speed_up) / max(float(score @ score), 1e-12)
    return table.select(pl.coalesce("speed_up", pl.col("score_gain") * scale)).to_series()


def _calibration_error(confidence: Floats, right: Bools) -> float:
    bins = np.minimum((confidence * 10).astype(int), 9)
    error = 0.0
    for number in np.unique(bins):
        chosen = bins == number
        error += chosen.mean() * abs(confidence[chosen].mean() - right[chosen].mean())
    return float(error)
