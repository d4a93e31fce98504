"""Result files: where they lie, how they are read and written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from costlib.files import write_file

REPOSITORY = Path(__file__).parents[2]
COMMITTED = REPOSITORY / "tools" / "results"
RESULTS = Path(os.environ.get("COSTLIB_RESULTS", COMMITTED))
"""Where result files are read and written; ``python -m tools.evidence`` has others than the
committed ones."""
ZOO = REPOSITORY / "datasets" / "zoo"
FEWER_BITS = REPOSITORY / "datasets" / "precisions"


def read_result(name: str) -> Any:
    """Return what ``<name>.json`` holds; an empty dictionary if it is not there."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else {}


def write_result(name: str, content: Any) -> None:
    """Write or replace ``<name>.json`` in one step."""
    write_file(RESULTS / f"{name}.json", (json.dumps(content, indent=1) + "\n").encode())
