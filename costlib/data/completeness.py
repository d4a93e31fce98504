"""Whether what a dataset's rows refer to is there: the checks of ``verify`` that cost little.

Half a copy opens like a whole one. What reads a dataset asks here first, so that what is missing
is named at once and not by the first of a thousand tasks that needs it.
"""

from __future__ import annotations

from pathlib import Path

from costlib.data.checks import Check, reference_checks
from costlib.data.dataset import Dataset
from costlib.errors import DatasetError
from costlib.schema import PARTITIONED, TABLES

MEND_HARDWARE = "restore it from a copy, or remove the measurements of that hardware"
NO_HARDWARE = "is missing, but there are measurements on it"


def needed_hardware(dataset: Dataset) -> set[Path]:
    """Return the files of ``hardware/`` that a dataset's measurements are of."""
    return {
        dataset.path / "hardware" / f"{folder.name.removeprefix('hardware=')}.json"
        for table in PARTITIONED
        for folder in dataset.folders(table)
    }


def check_complete(dataset: Dataset) -> None:
    """Raise :class:`DatasetError` unless all that a dataset's rows refer to is there.

    That is in the held-out tasks, too. It reads two columns of each table.
    """
    for one in (dataset, dataset.held_out()):
        if one is not None:
            with one.reading():
                _check(one)


def _check(dataset: Dataset) -> None:
    for file in sorted(needed_hardware(dataset)):
        if not file.is_file():
            raise DatasetError(f"{file} {NO_HARDWARE}; {MEND_HARDWARE}")
    dataset.hardware()
    checks = _references(dataset)
    for table in ("networks", *PARTITIONED):
        columns = [column for column in checks if column in TABLES[table].names]
        rows = dataset.scan(table).select(columns).unique().collect()
        for column in columns:
            missing = rows.filter(checks[column].mask)[column].unique()
            if len(missing):
                raise DatasetError(
                    f"{dataset.path} is incomplete: rows of {table} {checks[column].what}, "
                    f"{len(missing)} in all, the first is {min(missing)}; copy it whole, or "
                    f"{checks[column].mend} (`costlib dataset verify` lists all)"
                )


def _references(dataset: Dataset) -> dict[str, Check]:
    """Return what must hold of the ids that rows refer to, by their column."""
    workloads, sketches = (
        set(dataset.scan(table).select(column).collect().to_series())
        for table, column in (("workloads", "workload_id"), ("sketches", "sketch_id"))
    )
    of_workload, of_sketch = reference_checks(workloads, sketches)
    return {"workload_id": of_workload, "sketch_id": of_sketch}
