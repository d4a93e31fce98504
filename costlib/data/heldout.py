"""Tasks that no model may be trained on: is any of them, or its like, on the other side?"""

from __future__ import annotations

from costlib.data.dataset import Dataset
from costlib.data.splits import WorkloadKey, overlapping


def workload_keys(dataset: Dataset) -> list[WorkloadKey]:
    """Return the key of each workload of a dataset."""
    rows = dataset.scan("workloads").select("workload_id", "name", "arguments").collect()
    return [
        WorkloadKey.of(workload_id, name, [argument["shape"] for argument in arguments])
        for workload_id, name, arguments in rows.iter_rows()
    ]


def leaked(dataset: Dataset, held_out: Dataset) -> set[str]:
    """Return the workloads of ``dataset`` that equal, or nearly equal, a held-out one."""
    return overlapping(workload_keys(dataset), workload_keys(held_out))
