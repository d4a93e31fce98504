"""Pictures and pages about runs, datasets and bundles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from costlib.data.completeness import check_complete
from costlib.data.dataset import Dataset
from costlib.errors import InputError
from costlib.hub import load_pretrained

if TYPE_CHECKING:
    from costlib.report.page import Page


def report(target: str, against: Path | None = None) -> Page:
    """Describe a run, a dataset or a bundle.

    Parameters
    ----------
    target
        The folder of one of them, or a bundle's name or address.
    against
        To compare a run with, see :func:`costlib.report.against.comparison`.

    Raises
    ------
    CostlibError
        It is none of them, or it is damaged.
    """
    folder = Path(target)
    if is_dataset(folder) and against is None:
        from costlib.report.dataset import dataset_report

        return dataset_report(open_dataset(folder))
    from costlib.report.found_run import is_run

    if is_run(folder):
        from costlib.report.run import run_report

        return run_report(folder, against)
    if against is not None:
        raise InputError(f"{target} is not a run, which alone can be compared with another")
    from costlib.report.bundle import bundle_report

    return bundle_report(load_pretrained(target))


def is_dataset(folder: Path) -> bool:
    """Whether a folder is a dataset's."""
    return (folder / "dataset.json").is_file()


def open_dataset(folder: Path) -> Dataset:
    """Open a dataset; raise :class:`DatasetError` if it is damaged, or half of it is missing."""
    dataset = Dataset.open(folder)
    check_complete(dataset)
    return dataset


def compare(targets: Sequence[str]) -> Page:
    """Compare any number of runs, of datasets, and of bundles.

    Raises
    ------
    CostlibError
        One is none of them, or damaged.
    """
    from costlib.report.compare import comparison_report

    return comparison_report(targets)
