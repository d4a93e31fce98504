"""Pictures and pages about runs, datasets and bundles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from costlib.data.dataset import Dataset
from costlib.hub import load_pretrained

if TYPE_CHECKING:
    from costlib.report.page import Page


def report(target: str) -> Page:
    """Describe a run, a dataset or a bundle.

    Parameters
    ----------
    target
        The folder of one of them, or a bundle's name or address.

    Raises
    ------
    CostlibError
        It is none of them, or it is damaged.
    """
    folder = Path(target)
    if (folder / "dataset.json").is_file():
        from costlib.report.dataset import dataset_report

        return dataset_report(Dataset.open(folder))
    if (folder / "trials").is_dir():
        from costlib.report.run import run_report

        return run_report(folder)
    from costlib.report.bundle import bundle_report

    return bundle_report(load_pretrained(target))
