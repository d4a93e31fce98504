"""What ``bundle.json`` says of a bundle: how it was made, from what, and the hash of every file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from costlib.canary_times import CanaryTimes
from costlib.errors import BundleError
from costlib.features.version import feature_version
from costlib.frozen import FrozenStrict
from costlib.hardware import Hardware

FORMAT_VERSION = 1
MANIFEST = "bundle.json"


class TrainedOn(FrozenStrict):
    """The data that a bundle's model has seen.

    Attributes
    ----------
    dataset
        The dataset's name.
    tasks, programs
        How many it was trained on.
    trained
        The workload ids it was trained on.
    held_out
        The workload ids it was judged on and has not seen.
    """

    dataset: str
    tasks: int
    programs: int
    trained: tuple[str, ...]
    held_out: tuple[str, ...]


class HardwareEntry(FrozenStrict):
    """A hardware that the model knows, and its canaries' reference."""

    hardware: Hardware
    canary: CanaryTimes | None


def kind_of(hardware: Sequence[HardwareEntry]) -> str:
    """Return the kind that all hardware of a bundle is of; CPUs if there is none."""
    return next((entry.hardware.kind for entry in hardware), "cpu")


class Manifest(FrozenStrict):
    """The content of ``bundle.json``."""

    format_version: int
    name: str
    costlib_version: str
    feature_version: str
    created: str
    command: str
    model_kind: str
    draft_kind: str | None = None
    seed: int
    hardware: tuple[HardwareEntry, ...]
    trained_on: TrainedOn
    metrics: dict[str, Any]
    files: dict[str, str]

    @property
    def families(self) -> list[str]:
        """The families of hardware that it was trained on, see ``Hardware.family``."""
        return sorted({entry.hardware.family for entry in self.hardware})


def read_manifest(path: Path) -> Manifest:
    """Read a bundle's manifest without looking at its other files.

    Raises
    ------
    BundleError
        It is missing, damaged or of another version, or names files outside the bundle.
    """
    try:
        content = (path / MANIFEST).read_bytes()
    except FileNotFoundError:
        raise BundleError(f"{path} is no bundle: it has no {MANIFEST}") from None
    except OSError as error:
        raise BundleError(f"{path / MANIFEST} cannot be read: {error}") from None
    return parse_manifest(content, path)


def parse_manifest(text: bytes, where: Path | str) -> Manifest:
    """Read the text of a manifest.

    Parameters
    ----------
    text
        JSON.
    where
        The bundle's folder or address, for messages.

    Raises
    ------
    BundleError
        See :func:`read_manifest`.
    """
    file = f"{where}/{MANIFEST}"
    try:
        content = json.loads(text)
        version = content["format_version"]
    except (ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{file} cannot be read: {error}") from None
    if version != FORMAT_VERSION:
        raise BundleError(
            f"{where} is a bundle of format {version!r}, this costlib reads {FORMAT_VERSION}; "
            "train it again or install the costlib that made it"
        )
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise BundleError(f"{file} is damaged: {place}: {problem['msg']}") from None
    computed = feature_version(kind_of(manifest.hardware))
    if manifest.feature_version != computed:
        raise BundleError(
            f"{where} was trained on features '{manifest.feature_version}', this costlib "
            f"computes '{computed}'; train it again"
        )
    for name in manifest.files:
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts:
            raise BundleError(f"{file} names a file outside the bundle: {name!r}")
    return manifest


def sha256_of(file: Path) -> str:
    """Return the hash of a file's content as the manifest has it."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
