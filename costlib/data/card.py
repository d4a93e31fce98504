"""The dataset card: a README that people and the Hugging Face hub can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from costlib.data.dataset import HELD_OUT_FOLDER, Dataset
from costlib.data.summary import DatasetSummary, summarize
from costlib.files import write_file
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
- Rows of origin `imported` come from foreign logs: without canaries, their latency is the mean of
  `run_secs`, a program may occur more than once, and its workload may have no IR.
- Rows of origin `repeated` measure a program once more that was a task's best.
- Programs are sampled, mutated and evolved from TVM's design spaces; no task is covered completely.
- `flops` counts operations on padding, too, which compilers may leave out.
- `datasets.load_dataset` does not see the folder `hardware=<id>`: load one hardware's configuration
  at a time where the hardware matters."""

_TRAINING = """\
There is one split, `train`. Judge a model on whole tasks that it was not trained on: programs of
one task are alike, and so are tasks that differ only in the batch.
"""

_HELD_OUT = """\
| split | tasks | measurements |
|---|---|---|
| `train` | {tasks:,} | {measurements:,} |
| `test` | {heldout_tasks:,} | {heldout_measurements:,} |

The held-out tasks lie in `heldout/`, a dataset of their own, and are not counted anywhere
else on this page. No model may be trained on them. No task of `train` equals one of them, or
differs from it only in the batch; `costlib dataset verify` proves it.
"""

_MUTATIONS = """\
{mutation_parents:,} programs were changed in every direction that their sketch allows. Each
record has the direction and the cost model's scores before and after; of the
{mutation_children:,} programs that came of it, {mutation_children_measured:,} were measured:
join `program_id` and `parent_id` with the measurements of the same hardware.
"""


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

With Hugging Face's `datasets`, where the name is a table or a hardware id:

```python
datasets.load_dataset("{name}", "measurements", split="train")
```

## Splits

{_splits(summary)}
## Tables

{_tables()}
## Known limits

{_LIMITS}

## Licence

Apache-2.0. The networks are randomly initialised; no weights and no user data are in here.
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
    held_out = dataset.held_out()
    globs: dict[str, dict[str, str]] = {}
    for split, one, folder in (("train", dataset, ""), ("test", held_out, f"{HELD_OUT_FOLDER}/")):
        for name, glob in (_globs(one) if one else {}).items():
            globs.setdefault(name, {})[split] = folder + glob
    lines = ["configs:"] if globs else []
    for name, splits in globs.items():
        lines += [f"- config_name: {json.dumps(name)}", "  data_files:"]
        for split, glob in splits.items():
            lines += [f"  - split: {split}", f"    path: {json.dumps(glob)}"]
        lines += ["  default: true"] * (name == "measurements")
    return "".join(f"{line}\n" for line in lines)


def _globs(dataset: Dataset) -> dict[str, str]:
    globs = {
        table: f"{table}/*/*.parquet" if table in PARTITIONED else f"{table}/*.parquet"
        for table in TABLES
        if dataset.part_files(table)
    }
    for folder in sorted({part.parent.name for part in dataset.part_files("measurements")}):
        globs[folder.removeprefix("hardware=")] = f"measurements/{folder}/*.parquet"
    return globs


def _splits(summary: DatasetSummary) -> str:
    counts = summary.model_dump()
    text = (_HELD_OUT if summary.heldout_measurements else _TRAINING).format_map(counts)
    if summary.mutation_parents:
        text += "\n## Mutations\n\n" + _MUTATIONS.format_map(counts)
    return text


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
