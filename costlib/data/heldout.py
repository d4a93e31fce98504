"""Tasks that no model may be trained on: is any of them, or its like, on the other side?"""

from __future__ import annotations

import polars as pl

from costlib.data.dataset import Dataset
from costlib.data.splits import overlapping, workload_keys
from costlib.schema import PARTITIONED


def leaked(dataset: Dataset, held_out: Dataset) -> set[str]:
    """Return the workloads with records in ``dataset`` that equal, or nearly equal, a held-out one.

    Those that ``dataset`` only lists, because one of its networks calls them, are no leak.
    """
    recorded = pl.concat(dataset.scan(table).select("workload_id") for table in PARTITIONED)
    trained_on = dataset.scan("workloads").join(recorded.unique(), on="workload_id", how="semi")
    return overlapping(workload_keys(trained_on), workload_keys(held_out.scan("workloads")))
