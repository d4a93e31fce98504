"""Which parts of a folder count.

Compaction (:mod:`costlib.data.compact`) writes one part that names, in its metadata, the parts
whose rows it holds. From the moment it is renamed into place those do not count; removing them
only tidies up, and whoever comes next finishes that where it was interrupted.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from costlib.data.parts import COMPACTED, PART_PATTERN, REPLACES
from costlib.files import storage_errors, sync_folder

_names = TypeAdapter(list[str])


def list_parts(folder: Path) -> list[Path]:
    """Return the parts of ``folder`` that count, oldest first."""
    return _parts(folder, replaced=False)


def replaced_parts(folder: Path) -> list[Path]:
    """Return the parts of ``folder`` that do not count because another holds their rows."""
    return _parts(folder, replaced=True)


def remove_replaced(folder: Path) -> None:
    """Remove the parts that do not count, lastingly.

    Nobody else may replace parts of ``folder`` meanwhile.

    Raises
    ------
    StorageError
        They cannot be removed; they still do not count.
    """
    leftover = replaced_parts(folder)
    with storage_errors(folder):
        for part in leftover:
            part.unlink(missing_ok=True)
        if leftover:
            sync_folder(folder)


def _parts(folder: Path, *, replaced: bool) -> list[Path]:
    found = sorted(folder.glob(PART_PATTERN))
    names = {name for part in found if part.name.endswith(COMPACTED) for name in _replaces(part)}
    return [part for part in found if (part.name in names) == replaced]


def _replaces(part: Path) -> list[str]:
    try:
        metadata = pq.read_metadata(part).metadata or {}
        return _names.validate_json(metadata.get(REPLACES.encode(), b"[]"))
    except (pa.ArrowException, ValueError, OSError):
        return []  # Damaged, which whoever reads it will find out.
