"""The small JSON files of a dataset: its versions, and its hardwares."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

import costlib
from costlib.errors import DatasetError
from costlib.hardware import Hardware
from costlib.schema import SCHEMA_VERSION, CanaryTimes

MANIFEST = "dataset.json"


class DatasetInfo(BaseModel):
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

    model_config = ConfigDict(frozen=True)

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
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )


class HardwareFile(BaseModel):
    """What ``hardware/<hardware_id>.json`` says.

    Attributes
    ----------
    hardware
        The hardware.
    canary
        Its reference: what the canaries take when latencies need no correction, in seconds;
        ``None`` if everything measured on it was imported without canaries.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    hardware: Hardware
    canary: CanaryTimes | None = None


def read_info(folder: Path) -> DatasetInfo:
    """Read a dataset's ``dataset.json``.

    Raises
    ------
    DatasetError
        There is none, or it is damaged, or the schema version is another.
    """
    file = folder / MANIFEST
    try:
        content = json.loads(file.read_bytes())
        _check_version(folder, content["schema_version"])
        return DatasetInfo.model_validate(content)
    except DatasetError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        if folder.exists():
            raise DatasetError(f"{folder} is not a dataset: it has no {MANIFEST}") from error
        raise DatasetError(
            f"there is no dataset at {folder}; `costlib collect` makes one"
        ) from error
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise DatasetError(f"{file} is damaged: {_reason(error)}") from error
    except (ValueError, TypeError, LookupError) as error:
        raise DatasetError(f"{file} is damaged: it holds no description of a dataset") from error


def read_hardware(file: Path) -> HardwareFile:
    """Read one file of ``hardware/``; raise :class:`DatasetError` if it is damaged."""
    try:
        return HardwareFile.model_validate_json(file.read_bytes())
    except OSError as error:
        raise DatasetError(f"{file} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise DatasetError(f"{file} is damaged: {_reason(error)}") from error


def _check_version(path: Path, version: Any) -> None:
    if isinstance(version, int) and version != SCHEMA_VERSION:
        mend = "update costlib" if version > SCHEMA_VERSION else "collect again or use that costlib"
        raise DatasetError(
            f"{path} has schema version {version}, this costlib reads {SCHEMA_VERSION}; {mend}"
        )


def _reason(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'])) or 'content'}: {first['msg']}"


def _tvm_version() -> str | None:
    try:
        return metadata.version("apache-tvm")
    except metadata.PackageNotFoundError:
        return None
