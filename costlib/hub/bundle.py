"""A bundle on disk: a cost model, what it was trained on, and the hash of every file.

``bundle.json`` names all files of the folder with their SHA-256. The model lies under ``model/``;
what else there is, under ``draft/`` (a model of schedules, for a first look at many candidates),
``directions/`` (which mutation pays), ``priors/`` (the best programs known) and ``generator/`` (a
language model of programs). Text, JSON, safetensors and parquet only: nothing that is read can
execute.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import costlib
from costlib.canary_times import CanaryTimes
from costlib.errors import BundleError, CostlibError, InputError
from costlib.features.version import LANGUAGE_VERSION, feature_version
from costlib.files import replacing_folder, restore_folder, storage_errors
from costlib.generator.model import Generator
from costlib.hardware import Hardware
from costlib.hub.card import model_card
from costlib.hub.manifest import (
    FORMAT_VERSION,
    MANIFEST,
    HardwareEntry,
    Manifest,
    TrainedOn,
    kind_of,
    read_manifest,
    sha256_of,
)
from costlib.hub.priors import PriorBank
from costlib.identity import content_id
from costlib.models import model_class
from costlib.models.base import COLUMNS, CostModel
from costlib.models.direction import DirectionModel
from costlib.places import check_free

CARD = "README.md"
_MODEL = "model"
_DRAFT = "draft"
_DIRECTIONS = "directions"
_PRIORS = "priors"
_GENERATOR = "generator"

PARTS = (_MODEL, _DRAFT, _DIRECTIONS, _PRIORS, _GENERATOR)
"""The folders of a bundle."""


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

    def priors_for(self, hardware: Hardware) -> PriorBank | None:
        """Return the best programs known on hardware of the same family; ``None`` without any."""
        if self.priors is None or self.manifest.families == [hardware.family]:
            return self.priors
        known = (entry.hardware for entry in self.manifest.hardware)
        return self.priors.among(
            {one.hardware_id for one in known if one.family == hardware.family}
        )

    def check_kind(self, hardware: Hardware) -> None:
        """Check that it was trained on hardware of this kind: CPUs, or a kind of GPU.

        Raises
        ------
        InputError
            It was not, and its models take other numbers than describe such programs.
        """
        if hardware.kind not in {entry.hardware.kind for entry in self.manifest.hardware}:
            raise InputError(
                f"the bundle '{self.name}' was trained on {', '.join(self.manifest.families)} and "
                f"says nothing of {hardware.family}; leave it out (--pretrained none), or train one"
            )

    def unknown(self, hardware: Hardware) -> str:
        """Say in a line what of this hardware the models have not seen; nothing if they know it."""
        known = [entry.hardware for entry in self.manifest.hardware]
        if hardware.hardware_id in {one.hardware_id for one in known}:
            return ""
        text = f"the bundle '{self.name}' was trained on no measurement of {hardware.hardware_id}"
        if hardware.family not in self.manifest.families:
            return f"{text}, nor of any {hardware.family}"
        if hardware.vector_bits not in {one.vector_bits for one in known}:
            return f"{text}, nor of any with {hardware.vector_bits}-bit vectors"
        return text

    @cached_property
    def generator(self) -> Generator | None:
        """The generator, if there is one. It takes torch, so it is read when first asked for.

        Raises
        ------
        BundleError
            The bundle's folder was replaced or changed since the bundle was loaded.
        """
        files = [name for name in self.manifest.files if _part_of(name) == _GENERATOR]
        if not files:
            return None
        _check_files(self.path, self.manifest, files)
        generator = Generator.load(self.path / _GENERATOR, LANGUAGE_VERSION)
        if read_manifest(self.path) != self.manifest:
            raise BundleError(f"{self.path} was replaced while it was read; load it again")
        return generator

    def require_generator(self) -> Generator:
        """Return the generator.

        Raises
        ------
        InputError
            There is none.
        BundleError
            See :attr:`generator`.
        """
        if self.generator is None:
            raise InputError(
                f"'{self.name}' has no generator; `costlib train --generator-epochs 2` makes one"
            )
        return self.generator

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
        restore_folder(path)
        while True:
            manifest = read_manifest(path)
            try:
                bundle = cls._load(path, manifest)
            except (CostlibError, OSError):
                if read_manifest(path) == manifest:
                    raise
            else:
                if read_manifest(path) == manifest:
                    return bundle
            # The folder was replaced meanwhile: what was read may be of both.

    @classmethod
    def _load(cls, path: Path, manifest: Manifest) -> Bundle:
        # A model may lack its columns' names, so ones that were put there would not be missed.
        named = (file.relative_to(path).as_posix() for file in path.rglob(COLUMNS))
        _check_files(path, manifest, {*manifest.files, *named})
        parts = {_part_of(name) for name in manifest.files}
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
    replace: bool = False,
) -> Bundle:
    """Write a bundle, at once or not at all.

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
    replace
        Take the place of another bundle.

    Raises
    ------
    BundleError
        Something is there already.
    StorageError
        It cannot be written.
    """
    out = Path(out).absolute()
    check_place(out, replace=replace)
    parts = dict(zip(PARTS, (model, draft, directions, priors, generator), strict=True))
    with storage_errors(out), replacing_folder(out) as new:
        for folder, part in parts.items():
            if part is not None:
                (new / folder).mkdir()
                part.save(new / folder)
        manifest = Manifest(
            format_version=FORMAT_VERSION,
            name=out.name,
            costlib_version=costlib.__version__,
            feature_version=feature_version(kind_of(hardware)),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            command=command,
            model_kind=model.kind,
            draft_kind=None if draft is None else draft.kind,
            seed=seed,
            hardware=hardware,
            trained_on=trained_on,
            metrics=metrics,
            files={
                file.relative_to(new).as_posix(): sha256_of(file)
                for file in sorted(new.rglob("*"))
                if file.is_file()
            },
        )
        for name in manifest.files:
            (new / name).chmod(0o644)  # safetensors keeps its files to their owner.
        (new / CARD).write_text(model_card(manifest))
        (new / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")
    return Bundle.load(out)


def holds_bundle(path: Path) -> bool:
    """Say whether a folder holds a bundle; to be asked before one is written there."""
    restore_folder(path)
    return (path / MANIFEST).is_file()


def check_place(path: Path, *, replace: bool = False) -> None:
    """Raise :class:`BundleError` if something is where a bundle is to go.

    With ``replace`` that may be another bundle.
    """
    restore_folder(path)
    check_free(path, "bundle", replace=replace, replaceable=["a bundle"], error=BundleError)


def _check_files(path: Path, manifest: Manifest, names: Iterable[str]) -> None:
    for name in names:
        if not (path / name).is_file():
            raise BundleError(f"{path} is incomplete: {name} is missing; get the bundle again")
        if sha256_of(path / name) != manifest.files.get(name):
            raise BundleError(
                f"{path / name} was changed after the bundle was saved; get the bundle again"
            )


def _part_of(name: str) -> str:
    return PurePosixPath(name).parts[0]
