"""The dataset card: a README that people and the Hugging Face hub can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from costlib.data.dataset import Dataset
from costlib.data.parts import write_file
from costlib.data.summary import DatasetSummary, summarize
from costlib.hardware import Hardware
from costlib.schema import PARTITIONED, TABLES

CARD = "README.md"

_SIZES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")

_LIMITS = """\
- Latencies of different hardware ids, or of the same id before and after a change of the
  machine, are not to be compared: rank programs within one task on one hardware.
- `latency_s` is corrected by the canaries measured beside each run; `run_secs`, `canary_compute`
  and `canary_memory` are what was really timed. Where `raced` is true the program had fewer
  repeats, because it could no longer win: its latency is less certain.
- A program that failed has a `status` and no latency. It is not slow; it is not valid.
- Programs are sampled, mutated and evolved from TVM's design spaces; no task is covered completely.
- `datasets.load_dataset` does not see the folder `hardware=<id>`: load one hardware's configuration
  at a time where the hardware matters."""


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
    summary = summarize(dataset)
    hardware = dataset.hardware()
    name = dataset.path.resolve().name
    return f"""\
---
license: apache-2.0
pretty_name: {json.dumps(name)}
tags:
- apache-tvm
- cost-model
- auto-tuning
- compiler
- performance
size_categories:
- {size_category(summary.measurements)}
{_configs(dataset)}---

# {name}

<!-- Written by costlib from the data; what is edited here is lost the next time. -->

Measured latencies of tensor programs for training cost models, in the format of costlib,
schema version {summary.schema_version}.

{_counts(summary)}
## Hardware

{_hardware(summary, hardware)}
Made with costlib {dataset.info.costlib_version} and \
Apache TVM {dataset.info.tvm_version or "(not installed)"}, begun {dataset.info.created}.

## Reading it

With any tool that reads parquet, for example polars:

```python
import polars as pl

measurements = pl.scan_parquet("{name}/measurements/**/*.parquet", hive_partitioning=True)
workloads = pl.scan_parquet("{name}/workloads/*.parquet")
ran = measurements.filter(pl.col("status") == "ok").join(workloads, on="workload_id")
```

With costlib, which also checks versions and parts:

```python
from costlib.data.dataset import Dataset

Dataset.open("{name}").scan().collect()
```

## Tables

{_tables()}
## Known limits

{_LIMITS}
"""


def size_category(rows: int) -> str:
    """Return the hub's name for a number of rows, e.g. ``"1K<n<10K"``."""
    lower = None
    for exponent, name in enumerate(_SIZES, start=3):
        if rows < 10**exponent:
            return f"{lower}<n<{name}" if lower else f"n<{name}"
        lower = name
    return f"n>{lower}"


def _configs(dataset: Dataset) -> str:
    """List what ``load_dataset`` can load: each table, and the measurements of each hardware."""
    globs = {
        table: f"{table}/*/*.parquet" if table in PARTITIONED else f"{table}/*.parquet"
        for table in TABLES
        if dataset.part_files(table)
    }
    if "measurements" in globs:
        folders = {part.parent.name for part in dataset.part_files("measurements")}
        for folder in sorted(folders):
            globs[folder.removeprefix("hardware=")] = f"measurements/{folder}/*.parquet"
    lines = ["configs:"] if globs else []
    for name, glob in globs.items():
        lines += [f"- config_name: {json.dumps(name)}", f"  data_files: {json.dumps(glob)}"]
        lines += ["  default: true"] * (name == "measurements")
    return "".join(f"{line}\n" for line in lines)


def _counts(summary: DatasetSummary) -> str:
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
    tables = [
        _table("", "", sizes),
        _table("status", "measurements", summary.measurements_by_status),
        _table("origin", "measurements", summary.measurements_by_origin),
        _table("network", "tasks", summary.tasks_by_network),
        _table("operator", "tasks", summary.tasks_by_operator),
    ]
    return "\n".join(table for table in tables if table)


def _hardware(summary: DatasetSummary, hardware: Mapping[str, Hardware]) -> str:
    rows = [
        f"| `{hardware_id}` | {_cell(one.model)} | {one.num_cores} | `{json.dumps(one.target)}` | "
        f"{summary.measurements_by_hardware.get(hardware_id, 0):,} |"
        for hardware_id, one in hardware.items()
    ]
    head = ["| id | processor | cores | target | measurements |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows, ""])


def _tables() -> str:
    text = ""
    for table, schema in TABLES.items():
        columns = {f"`{field.name}`": field.metadata[b"doc"].decode() for field in schema}
        text += f"### {table}\n\n{_table('column', 'meaning', columns)}\n"
    return text


def _table(left: str, right: str, rows: Mapping[str, object]) -> str:
    if not rows:
        return ""
    lines = [f"| {_cell(name)} | {_cell(value)} |" for name, value in rows.items()]
    return "\n".join([f"| {left} | {right} |", "|---|---|", *lines, ""])


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
