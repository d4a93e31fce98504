"""What pages call tasks: as costlib does, with shapes where the shipped dataset knows them."""

from __future__ import annotations

from functools import cache

from costlib.data.dataset import Dataset
from costlib.data.task_tables import title_of
from costlib.workloads.title import task_title
from tools.evidence.files import REPOSITORY


def title(name: str, workload_id: str) -> str:
    """Return what people call a task; of ``workload_id`` the first six digits do."""
    return _known().get(workload_id[:6]) or task_title(name, (), workload_id)


@cache
def _known() -> dict[str, str]:
    zoo = Dataset.open(REPOSITORY / "datasets" / "zoo")
    datasets = [one for one in (zoo, zoo.held_out()) if one is not None]
    columns = ("workload_id", "name", "arguments")
    return {
        row["workload_id"][:6]: title_of(row)
        for dataset in datasets
        for row in dataset.scan("workloads").select(columns).collect().iter_rows(named=True)
    }
