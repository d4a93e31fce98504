"""The dataset card: a README that people and the Hugging Face hub can read."""

from __future__ import annotations

import json
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from costlib.data.coverage import by_operator
from costlib.data.dataset import HELD_OUT_FOLDER, Dataset
from costlib.data.parts import hardware_of
from costlib.data.provenance import read_sources
from costlib.data.summary import summarize
from costlib.files import write_file
from costlib.schema import PARTITIONED, TABLES

CARD = "README.md"

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")


def write_card(dataset: Dataset) -> Path:
    """Write the dataset's ``README.md`` from what the dataset holds now, replacing it.

    Returns
    -------
    Path
        The card.

    Raises
    ------
    DatasetError
        A part is damaged.
    StorageError
        The card could not be written; the earlier one is still there.
    """
    card = dataset.path / CARD
    write_file(card, make_card(dataset).encode(), dataset.scratch)
    return card


def make_card(dataset: Dataset) -> str:
    """Return the text that :func:`write_card` writes."""
    environment = Environment(
        loader=PackageLoader("costlib.data"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["json"] = json.dumps
    environment.filters["number"] = "{:,}".format
    environment.filters["cell"] = _cell
    environment.filters["meaning"] = lambda field: field.metadata[b"doc"].decode()
    summary = summarize(dataset)
    per_task = (
        f"{summary.measurements_per_task_min} / {summary.measurements_per_task_median:g} / "
        f"{summary.measurements_per_task_max}"
    )
    sizes = {
        "measurements": f"{summary.measurements:,}",
        "that ran": f"{summary.ok:,}",
        "distinct programs": f"{summary.programs:,}",
        "tasks": f"{summary.tasks:,}",
        "measurements per task, least / median / most": per_task,
        "bytes on disk": f"{summary.bytes:,}",
    }
    return environment.get_template("card.md").render(
        name=dataset.path.resolve().name,
        info=dataset.info,
        size_category=size_category(summary.measurements),
        configs=_configs(dataset),
        summary=summary,
        sources=read_sources(dataset),
        counts=[
            ("", "", sizes),
            ("status", "measurements", summary.measurements_by_status),
            ("origin", "measurements", summary.measurements_by_origin),
            ("network", "tasks", summary.tasks_by_network),
            ("operator", "tasks", dict(by_operator(dataset)["operator", "tasks"].iter_rows())),
        ],
        hardware=dataset.hardware(),
        tables=TABLES,
    )


def size_category(rows: int) -> str:
    """Return the hub's name for a number of rows, e.g. ``"1K<n<10K"``."""
    lower = None
    for exponent, name in enumerate(_SIZES, start=3):
        if rows < 10**exponent:
            return f"{lower}<n<{name}" if lower else f"n<{name}"
        lower = name
    return f"n>{lower}"


def _configs(dataset: Dataset) -> dict[str, dict[str, str]]:
    """List what ``load_dataset`` can load: each table, and the measurements of each hardware."""
    held_out = dataset.held_out()
    globs: dict[str, dict[str, str]] = {}
    for split, one, folder in (("train", dataset, ""), ("test", held_out, f"{HELD_OUT_FOLDER}/")):
        for name, glob in (_globs(one) if one else {}).items():
            globs.setdefault(name, {})[split] = folder + glob
    return globs


def _globs(dataset: Dataset) -> dict[str, str]:
    globs = {
        table: f"{table}/*/*.parquet" if table in PARTITIONED else f"{table}/*.parquet"
        for table in TABLES
        if dataset.part_files(table)
    }
    for hardware_id in sorted({hardware_of(part) for part in dataset.part_files("measurements")}):
        globs[hardware_id] = f"measurements/hardware={hardware_id}/*.parquet"
    return globs


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
