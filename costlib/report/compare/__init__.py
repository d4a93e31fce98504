"""The page that compares runs, datasets and bundles, each with its like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from costlib.hub import load_pretrained
from costlib.report import is_dataset, open_dataset
from costlib.report.compare.bundles import bundle_section, bundle_verdict
from costlib.report.compare.datasets import dataset_section, dataset_verdict
from costlib.report.compare.runs import RunComparison
from costlib.report.found_run import find_run, is_run
from costlib.report.page import Page, Section, Sentence
from costlib.report.units import counted


def comparison_report(targets: Sequence[str]) -> Page:
    """Compare any number of runs, of datasets and of bundles.

    Parameters
    ----------
    targets
        Folders, or bundles' names or addresses.

    Raises
    ------
    CostlibError
        One is none of them, or damaged.
    """
    runs, datasets, bundles = [], [], []
    for target in dict.fromkeys(targets):
        folder = Path(target)
        if is_dataset(folder):
            datasets.append(open_dataset(folder))
        elif is_run(folder):
            runs.append(find_run(folder))
        else:
            bundles.append(load_pretrained(target))
    verdict: list[Sentence] = []
    sections: list[Section] = []
    if runs:
        compared = RunComparison(runs)
        verdict += compared.verdict()
        sections += compared.sections()
    if bundles:
        verdict += bundle_verdict(bundles)
        sections.append(bundle_section(bundles))
    if datasets:
        verdict += dataset_verdict(datasets)
        sections.append(dataset_section(datasets))
    counts = {"run": len(runs), "dataset": len(datasets), "bundle": len(bundles)}
    what = ", ".join(counted(count, kind) for kind, count in counts.items() if count)
    return Page(f"Comparison of {what}", "", sections=sections, verdict=verdict)
