"""The mutation records of a dataset as arrays, and how well directions are told apart."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict

from costlib.arrays import Bools, Floats, Integers
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.features.batch import FeatureBatch, join, select
from costlib.features.task_encoder import TaskEncoder
from costlib.models.direction import DirectionModel
from costlib.space.directions import DIRECTIONS, stock_probabilities

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


class DirectionMetrics(BaseModel):
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

    model_config = ConfigDict(frozen=True)

    programs: int
    accuracy: float
    stock_accuracy: float
    chance: float
    gain: float
    stock_gain: float
    best_gain: float
    calibration_error: float


def direction_data(
    dataset: Dataset, hardware_id: str, only: Collection[str] | None = None
) -> DirectionData:
    """Read the mutation records of one hardware.

    Parameters
    ----------
    dataset
        The dataset.
    hardware_id
        One of its hardwares.
    only
        Workload ids to take; all if not given.

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
    table = table.with_columns(gain=_gain(table))
    batches, gains, measured, groups = [], [], [], []
    tasks: list[str] = []
    for (workload_id,), rows in table.group_by("workload_id", maintain_order=True):
        parents = rows.unique("parent_id", keep="first", maintain_order=True)
        place = {parent: number for number, parent in enumerate(parents["parent_id"])}
        table_of_gains = np.full((len(parents), len(DIRECTIONS)), np.nan)
        was_measured = np.zeros(table_of_gains.shape, bool)
        for parent, direction, gain, seen in rows.select(
            "parent_id", "direction", "gain", "seen"
        ).iter_rows():
            spot = place[parent], DIRECTIONS.index(direction)
            table_of_gains[spot] = gain
            was_measured[spot] = seen
        batches.append(_schedules(dataset, hardware_id, str(workload_id), parents))
        gains.append(table_of_gains)
        measured.append(was_measured)
        groups.append(np.full(len(parents), len(tasks)))
        tasks.append(str(workload_id))
    return DirectionData(
        join(batches),
        np.concatenate(gains),
        np.concatenate(measured),
        np.concatenate(groups),
        tasks,
    )


def fit_directions(
    dataset: Dataset,
    *,
    hardware: Collection[str] | None = None,
    only: Collection[str] | None = None,
    seed: int = 0,
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
    records = dataset.scan("mutations")
    if hardware is not None:
        records = records.filter(pl.col("hardware").is_in(list(hardware)))
    counts = records.group_by("hardware").agg(pl.len())
    ranked = counts.sort("len", "hardware", descending=True).collect()["hardware"]
    if ranked.is_empty():
        return None
    data = direction_data(dataset, ranked[0], only)
    judged = data.groups % _JUDGED_EVERY == _JUDGED_EVERY - 1
    if min(_comparable(data, judged), _comparable(data, ~judged)) < _LEAST_PROGRAMS:
        return None
    partial, model = DirectionModel(), DirectionModel()
    partial.fit(select(data.batch, ~judged), data.gains[~judged], data.groups[~judged], seed=seed)
    model.fit(data.batch, data.gains, data.groups, seed=seed)
    unseen = replace(
        data,
        batch=select(data.batch, judged),
        gains=data.gains[judged],
        measured=data.measured[judged],
        groups=data.groups[judged],
    )
    return model, evaluate_directions(partial, unseen)


def _comparable(data: DirectionData, chosen: np.ndarray[Any, Any]) -> int:
    """Programs that were changed in two directions or more."""
    return int(((~np.isnan(data.gains[chosen])).sum(1) >= 2).sum())


def evaluate_directions(model: DirectionModel, data: DirectionData) -> DirectionMetrics:
    """Compare a model's directions with stock's, on programs it has not seen."""
    allowed = ~np.isnan(data.gains)
    rows = allowed.sum(1) >= 2
    gains, allowed = data.gains[rows], allowed[rows]
    every = np.arange(len(gains))
    best = np.nanargmax(gains, 1)
    known = ~np.isnan(data.gains)
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


def _family_table(dataset: Dataset, hardware_id: str, only: Collection[str] | None) -> pl.DataFrame:
    """A row for each child: the difference of scores, and the speed-up where it was measured."""
    here = pl.col("hardware") == hardware_id
    latencies = dataset.scan().filter(here).group_by("program_id").agg(pl.col("latency_s").median())
    parents = (
        dataset.scan()
        .filter(here)
        .group_by(parent_id="program_id")
        .agg(
            parent_decisions=pl.col("decisions").first(),
            parent_latency_s=pl.col("latency_s").median(),
        )
    )
    children = dataset.scan("mutations").filter(here & pl.col("child_score").is_not_null())
    if only is not None:
        children = children.filter(pl.col("workload_id").is_in(list(only)))
    speed_up = (pl.col("parent_latency_s") / pl.col("latency_s")).log()
    return (
        children.join(latencies, on="program_id", how="left")
        .join(parents, on="parent_id", how="inner")
        .with_columns(speed_up=speed_up, score_gain=pl.col("child_score") - pl.col("parent_score"))
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


def _schedules(
    dataset: Dataset, hardware_id: str, workload_id: str, parents: pl.DataFrame
) -> FeatureBatch:
    row = dataset.scan("workloads").filter(workload_id=workload_id).collect().row(0, named=True)
    used = parents["sketch_id"].unique().to_list()
    sketches = dataset.scan("sketches").filter(pl.col("sketch_id").is_in(used)).collect()
    texts = sketches.select("sketch_id", "instructions").iter_rows()
    instructions = {sketch_id: json.loads(text) for sketch_id, text in texts}
    encoder = TaskEncoder.of_row(row, instructions, dataset.hardware()[hardware_id])
    return encoder.written_schedules(
        parents["sketch_id"].to_list(), parents["parent_decisions"].to_list()
    )


def _calibration_error(confidence: Floats, right: Any) -> float:
    bins = np.minimum((confidence * 10).astype(int), 9)
    error = 0.0
    for number in np.unique(bins):
        chosen = bins == number
        error += chosen.mean() * abs(confidence[chosen].mean() - right[chosen].mean())
    return float(error)
