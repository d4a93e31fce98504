"""What became of the files of an import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict


class FileReport(BaseModel):
    """What became of one file.

    Attributes
    ----------
    file
        Its path.
    formats
        What was found in it: ``metaschedule``, ``ansor``, ``autotvm``, ``workloads``.
    records
        Tuning records in it, those that could not be read included.
    imported
        Those that are in the dataset now and were not before.
    failed_measurements
        Those of the imported that say that a program failed.
    skipped
        Those left out, counted by reason; also what made the whole file useless.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    formats: list[str]
    records: int
    imported: int
    failed_measurements: int
    skipped: dict[str, int]


class ImportReport(BaseModel):
    """What became of all files, each and in sum."""

    model_config = ConfigDict(frozen=True)

    files: list[FileReport]
    records: int
    imported: int
    failed_measurements: int
    skipped: dict[str, int]

    @classmethod
    def of(cls, files: Sequence[FileReport]) -> ImportReport:
        """Add up the reports of the files."""
        skipped: Counter[str] = Counter()
        for file in files:
            skipped.update(file.skipped)
        return cls(
            files=list(files),
            records=sum(file.records for file in files),
            imported=sum(file.imported for file in files),
            failed_measurements=sum(file.failed_measurements for file in files),
            skipped=dict(skipped),
        )
