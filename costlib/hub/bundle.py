"""A bundle on disk: a cost model, what it was trained on, and the hash of every file.

``bundle.json`` names all files of the folder with their SHA-256. The model lies under ``model/``;
what else there is, under ``draft/`` (a model of schedules, for a first look at many candidates),
``directions/`` (which mutation pays), ``priors/`` (the best programs known) and ``generator/`` (a
language model of programs). Text, JSON, safetensors and parquet only: nothing that is read can
execute.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

import costlib
from costlib.errors import BundleError, InputError
from costlib.features.version import FEATURE_VERSION, LANGUAGE_VERSION
from costlib.files import storage_errors
from costlib.generator.model import Generator
from costlib.hardware import Hardware
from costlib.hub.card import model_card
from costlib.hub.priors import PriorBank
from costlib.identity import content_id
from costlib.models import model_class
from costlib.models.base import CostModel
from costlib.models.direction import DirectionModel
from costlib.schema import CanaryTimes

FORMAT_VERSION = 1
MANIFEST = "bundle.json"
CARD = "README.md"
_MODEL = "model"
_DRAFT = "draft"
_DIRECTIONS = "directions"
_PRIORS = "priors"
_GENERATOR = "generator"


class TrainedOn(BaseModel):
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

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    tasks: int
    programs: int
    trained: tuple[str, ...]
    held_out: tuple[str, ...]


class HardwareEntry(BaseModel):
    """A hardware that the model knows, and its canaries' reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hardware: Hardware
    canary: CanaryTimes | None


class Manifest(BaseModel):
    """The content of ``bundle.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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


@dataclass(frozen=True)
class Bundle:
    """A loaded bundle and everything its manifest says.

    Attributes
    ----------
    model
        The cost model.
    draft
        A model of the ``"schedule"`` view that scores thousands of candidates at once.
    directions
        Which mutation pays.
    priors
        The best programs known.
    """

    model: CostModel
    manifest: Manifest
    path: Path
    draft: CostModel | None = None
    directions: DirectionModel | None = None
    priors: PriorBank | None = None

    @property
    def name(self) -> str:
        """The name it was published under."""
        return self.manifest.name

    @property
    def fingerprint(self) -> str:
        """Its name and the hash of its files."""
        return f"{self.name}@{content_id(self.manifest.files)[:8]}"

    def statement_model(self) -> CostModel:
        """Return the model; raise :class:`BundleError` if it does not see lowered programs."""
        if self.model.view != "statements":
            raise BundleError(
                f"'{self.name}' holds a {self.model.kind} model, which sees schedules alone; "
                "lowered programs are scored by a model of statements, such as 'gbdt'"
            )
        return self.model

    def canary(self, hardware_id: str) -> CanaryTimes | None:
        """Return the reference of a hardware's canaries, if the bundle knows the hardware."""
        return next(
            (e.canary for e in self.manifest.hardware if e.hardware.hardware_id == hardware_id),
            None,
        )

    def load_generator(self) -> Generator | None:
        """Return the generator, if there is one; it takes torch, so it is loaded when asked for."""
        if not any(PurePosixPath(name).parts[0] == _GENERATOR for name in self.manifest.files):
            return None
        return Generator.load(self.path / _GENERATOR, LANGUAGE_VERSION)

    def require_generator(self) -> Generator:
        """Return the generator.

        Raises
        ------
        InputError
            There is none.
        """
        generator = self.load_generator()
        if generator is None:
            raise InputError(
                f"'{self.name}' has no generator; `costlib train --generator-epochs 2` makes one"
            )
        return generator

    @classmethod
    def load(cls, path: str | Path) -> Bundle:
        """Read a bundle and check every file against its hash.

        Raises
        ------
        BundleError
            The folder is no bundle, a file is missing or was changed, or the bundle was made
            by a version of costlib whose format or features differ.
        """
        path = Path(path)
        manifest = read_manifest(path)
        for name, digest in manifest.files.items():
            _check_file(path, name, digest)
        parts = {PurePosixPath(name).parts[0] for name in manifest.files}
        draft = manifest.draft_kind
        return cls(
            model_class(manifest.model_kind).load(path / _MODEL),
            manifest,
            path,
            draft=None if draft is None else model_class(draft).load(path / _DRAFT),
            directions=DirectionModel.load(path / _DIRECTIONS) if _DIRECTIONS in parts else None,
            priors=PriorBank.load(path / _PRIORS) if _PRIORS in parts else None,
        )


def save_bundle(
    out: str | Path,
    model: CostModel,
    *,
    draft: CostModel | None = None,
    directions: DirectionModel | None = None,
    priors: PriorBank | None = None,
    generator: Generator | None = None,
    command: str,
    seed: int,
    hardware: tuple[HardwareEntry, ...],
    trained_on: TrainedOn,
    metrics: dict[str, Any],
) -> Bundle:
    """Write a bundle; an existing one at ``out`` is replaced at once or not at all.

    Parameters
    ----------
    out
        The bundle's folder; its last part is the bundle's name.
    model
        A fitted model.
    draft, directions, priors, generator
        See :class:`Bundle`.
    command
        The command that makes this bundle again.
    seed, hardware, trained_on, metrics
        See :class:`Manifest`.
    """
    out = Path(out).absolute()
    if out.exists() and any(out.iterdir()) and not (out / MANIFEST).is_file():
        raise BundleError(f"{out} exists and is no bundle; choose another folder")
    with storage_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        replaced = scratch.with_name(f"{scratch.name}-replaced")
        try:
            parts = {
                _MODEL: model,
                _DRAFT: draft,
                _DIRECTIONS: directions,
                _PRIORS: priors,
                _GENERATOR: generator,
            }
            for folder, part in parts.items():
                if part is not None:
                    (scratch / folder).mkdir()
                    part.save(scratch / folder)
            manifest = Manifest(
                format_version=FORMAT_VERSION,
                name=out.name,
                costlib_version=costlib.__version__,
                feature_version=FEATURE_VERSION,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                command=command,
                model_kind=model.kind,
                draft_kind=None if draft is None else draft.kind,
                seed=seed,
                hardware=hardware,
                trained_on=trained_on,
                metrics=metrics,
                files={
                    file.relative_to(scratch).as_posix(): _sha256(file)
                    for file in sorted(scratch.rglob("*"))
                    if file.is_file()
                },
            )
            for name in manifest.files:
                (scratch / name).chmod(0o644)  # safetensors keeps its files to their owner.
            (scratch / CARD).write_text(model_card(manifest))
            (scratch / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
            scratch.chmod(0o755)
            if out.exists():
                out.rename(replaced)
            scratch.rename(out)
            shutil.rmtree(replaced, ignore_errors=True)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return Bundle.load(out)


def read_manifest(path: Path) -> Manifest:
    """Read a bundle's manifest without looking at its other files.

    Raises
    ------
    BundleError
        It is missing, damaged or of another version, or names files outside the bundle.
    """
    file = path / MANIFEST
    try:
        content = json.loads(file.read_text())
        version = content["format_version"]
    except FileNotFoundError:
        raise BundleError(f"{path} is no bundle: it has no {MANIFEST}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{file} cannot be read: {error}") from None
    if version != FORMAT_VERSION:
        raise BundleError(
            f"{path} is a bundle of format {version!r}, this costlib reads {FORMAT_VERSION}; "
            "train it again or install the costlib that made it"
        )
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise BundleError(f"{file} is damaged: {where}: {problem['msg']}") from None
    if manifest.feature_version != FEATURE_VERSION:
        raise BundleError(
            f"{path} was trained on features '{manifest.feature_version}', this costlib "
            f"computes '{FEATURE_VERSION}'; train it again"
        )
    for name in manifest.files:
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts:
            raise BundleError(f"{file} names a file outside the bundle: {name!r}")
    return manifest


def _check_file(path: Path, name: str, digest: str) -> None:
    file = path / name
    if not file.is_file():
        raise BundleError(f"{path} is incomplete: {name} is missing; get the bundle again")
    if _sha256(file) != digest:
        raise BundleError(f"{file} was changed after the bundle was saved; get the bundle again")


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
