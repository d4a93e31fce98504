"""The small JSON files of a dataset: what its folder is known by, versions, hardwares."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from pydantic import ValidationError

import costlib
from costlib.canary_times import CanaryTimes
from costlib.errors import DatasetError
from costlib.files import storage_errors
from costlib.frozen import Frozen, FrozenStrict
from costlib.hardware import Hardware
from costlib.places import check_writable
from costlib.schema import SCHEMA_VERSION

MANIFEST = "dataset.json"

PROVENANCE = "provenance.json"
"""What a dataset was made from, see :mod:`costlib.data.provenance`."""

SCRATCH = ".unfinished"
"""Folder of a dataset for what is not finished yet."""


class DatasetInfo(Frozen):
    """What ``dataset.json`` says.

    Attributes
    ----------
    schema_version
        See :data:`costlib.schema.SCHEMA_VERSION`.
    costlib_version, tvm_version
        What made the dataset; ``tvm_version`` is ``None`` where TVM was not installed.
    created
        ISO 8601, UTC.
    """

    schema_version: int
    costlib_version: str
    tvm_version: str | None
    created: str

    @classmethod
    def new(cls) -> DatasetInfo:
        """Describe a dataset made here and now."""
        return cls(
            schema_version=SCHEMA_VERSION,
            costlib_version=costlib.__version__,
            tvm_version=_tvm_version(),
            created=datetime.now(UTC).isoformat(timespec="microseconds"),
        )


class HardwareFile(FrozenStrict):
    """What ``hardware/<hardware_id>.json`` says.

    Attributes
    ----------
    hardware
        The hardware.
    canary
        Its reference: what the canaries take when latencies need no correction, in seconds;
        ``None`` if everything measured on it was imported without canaries.
    """

    hardware: Hardware
    canary: CanaryTimes | None = None


def check_place(path: str | Path) -> None:
    """Refuse a folder that a dataset cannot be made or appended to in.

    Raises
    ------
    DatasetError
        It is a file or holds something else.
    StorageError
        It cannot be written.
    """
    path = Path(path)
    with storage_errors(path):
        if path.exists() and not path.is_dir():
            raise DatasetError(f"{path} is a file; choose a folder for the dataset")
        entries = {entry.name for entry in path.iterdir()} if path.exists() else set()
    if entries - {SCRATCH} and MANIFEST not in entries:
        raise DatasetError(f"{path} is not empty and no dataset; choose another folder")
    check_writable(path)


def read_info(folder: Path) -> DatasetInfo:
    """Read a dataset's ``dataset.json``.

    Raises
    ------
    DatasetError
        There is none, or it is damaged, or the schema version is another.
    """
    file = folder / MANIFEST
    with _damage_named(file):
        if not file.exists():
            if folder.exists():
                raise DatasetError(f"{folder} is not a dataset: it has no {MANIFEST}")
            raise DatasetError(f"there is no dataset at {folder}; `costlib collect` makes one")
        content = json.loads(file.read_bytes())
        version = content["schema_version"]
        if isinstance(version, int) and version != SCHEMA_VERSION:
            is_newer = version > SCHEMA_VERSION
            raise DatasetError(
                f"{folder} has schema version {version}, this costlib reads {SCHEMA_VERSION}; "
                + ("update costlib" if is_newer else "collect again or use that costlib")
            )
        return DatasetInfo.model_validate(content)


def read_hardware(file: Path) -> HardwareFile:
    """Read one file of ``hardware/``; raise :class:`DatasetError` if it is damaged."""
    with _damage_named(file):
        return HardwareFile.model_validate_json(file.read_bytes())


@contextmanager
def _damage_named(file: Path) -> Iterator[None]:
    """Turn what reading ``file`` raises into a :class:`DatasetError` about it."""
    try:
        yield
    except DatasetError:
        raise
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise DatasetError(f"{file} is damaged: {where}: {first['msg']}") from error
    except (ValueError, TypeError, LookupError) as error:
        raise DatasetError(f"{file} is damaged: it holds no description of a dataset") from error


def _tvm_version() -> str | None:
    try:
        return metadata.version("apache-tvm")
    except metadata.PackageNotFoundError:
        return None
