from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from costlib.data.dataset import Dataset
from costlib.errors import DatasetError, InputError
from costlib.training.batches import assemble
from costlib.training.fit import fit_model


def test_assembled_labels_are_relative_to_each_task(dataset: Dataset) -> None:
    data = assemble(dataset)
    assert len(data.tasks) == 3
    assert len(data.batch) == len(data.labels) == len(data.groups)
    for group in range(len(data.tasks)):
        labels = data.labels[data.groups == group]
        assert labels.max() == 1
        assert labels.min() > 0


def test_assembled_tasks_can_be_chosen(dataset: Dataset) -> None:
    workload_id = assemble(dataset).tasks[1][0]
    chosen = assemble(dataset, only={workload_id})
    assert {task for task, _ in chosen.tasks} == {workload_id}
    assert np.unique(chosen.groups).tolist() == [0]


def test_what_is_judged_on_is_not_trained_on(dataset: Dataset) -> None:
    fitted = fit_model(dataset, held_out_share=0.3)
    assert fitted.held_out
    assert not set(fitted.held_out) & set(fitted.trained)
    assert fitted.metrics.tasks == len(fitted.held_out)


def test_two_fits_agree(dataset: Dataset) -> None:
    first, again = (fit_model(dataset, held_out_share=0.3, seed=1) for _ in range(2))
    assert first.metrics == again.metrics


@pytest.mark.parametrize("share", [0, 1, -1, 2])
def test_shares_that_make_no_sense(dataset: Dataset, share: float) -> None:
    with pytest.raises(InputError, match="between 0 and 1"):
        fit_model(dataset, held_out_share=share)


def test_a_dataset_without_measurements(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="at least two"):
        fit_model(Dataset.create(tmp_path / "empty"))
