"""Writes what the tasks of the held-out networks are known by, for what collects without them.

::

    python -m tools.maintenance.held_out_likeness
"""

from __future__ import annotations

from pathlib import Path

from costlib.collecting.held_out import FILE
from costlib.data.dataset import Dataset
from costlib.data.splits import workload_keys

ROOT = Path(__file__).parents[2]


def held_out_likeness() -> str:
    """Return the file's text: a line for each task of the held-out networks, up to the batch."""
    held_out = Dataset.open(ROOT / "datasets" / "zoo").held_out()
    assert held_out is not None
    return (
        "\n".join(sorted({key.likeness for key in workload_keys(held_out.scan("workloads"))}))
        + "\n"
    )


if __name__ == "__main__":
    FILE.write_text(held_out_likeness())
