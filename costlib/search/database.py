"""The MetaSchedule database of a tuning run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from costlib.data.parts import storage_errors
from costlib.errors import InputError
from costlib.tvm_compat import ms

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"


def open_database(folder: Path) -> Any:
    """Open the database in a folder, or make one; stock TVM opens it under the same names.

    Raises
    ------
    InputError
        The files are there but no database of this TVM.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        return ms.database.JSONDatabase(
            str(folder / WORKLOADS), str(folder / RECORDS), allow_missing=True
        )
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise InputError(
            f"the database in {folder} cannot be read: {reason}; choose another folder"
        ) from None
