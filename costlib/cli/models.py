"""``costlib models`` and ``costlib publish``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.output import Json, print_json, print_result, print_table

if TYPE_CHECKING:
    from costlib.hub.manifest import Manifest

_log = logging.getLogger(__name__)


def models(
    pattern: Annotated[
        str,
        typer.Argument(
            help="A shell pattern, e.g. `cpu-*`; or an address with bundles, `hf://user`."
        ),
    ] = "*",
    remote: Annotated[
        bool, typer.Option("--remote", help="List those on the Hugging Face hub instead.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List the bundles that come with costlib, or those that others have published.

    Example: `costlib models "cpu-*"`
    """
    from costlib.remote.address import HF, is_url

    if is_url(pattern):
        _list_published(pattern, "*", as_json)
    elif remote:
        _list_published(HF, pattern, as_json)
    else:
        _list_shipped(pattern, as_json)


def _list_shipped(pattern: str, as_json: bool) -> None:
    from costlib.errors import BundleError, UnknownNameError
    from costlib.hub.manifest import read_manifest
    from costlib.hub.shelf import list_bundles

    manifests = []
    for path in list_bundles(pattern).values():
        try:
            manifests.append(read_manifest(path))
        except BundleError as error:
            _log.warning("%s", error)
    if not manifests:
        raise UnknownNameError("bundle", pattern, list_bundles())
    if as_json:
        print_json(manifests)
        return
    print_table("bundles", _COLUMNS, [_row(manifest.name, manifest) for manifest in manifests])
    for manifest in manifests:
        typer.echo(_machines(manifest.name, manifest))


def _list_published(where: str, pattern: str, as_json: bool) -> None:
    from costlib.errors import BundleError
    from costlib.hub.listing import list_published

    found = list(list_published(where, pattern))
    if not found:
        matching = "" if pattern == "*" else f" that matches {pattern}"
        raise BundleError(f"there is no bundle{matching} at {where}")
    if as_json:
        print_json(found)
        return
    print_table(f"bundles at {where}", _COLUMNS, [_row(one.address, one.manifest) for one in found])
    for one in found:
        pin = "" if one.revision is None else f"\n  pinned: {one.address}@{one.revision}"
        typer.echo(_machines(one.address, one.manifest) + pin)


_COLUMNS = ("name", "model", ">programs", ">tasks", ">judged on", ">top-1", ">top-5")


def _row(name: str, manifest: Manifest) -> tuple[object, ...]:
    metrics = manifest.metrics
    return (
        name,
        manifest.model_kind,
        f"{manifest.trained_on.programs:,}",
        manifest.trained_on.tasks,
        metrics["tasks"],
        f"{metrics['top1']:.3f}",
        f"{metrics['top5']:.3f}",
    )


def _machines(name: str, manifest: Manifest) -> str:
    ids = (f"\n  {entry.hardware.hardware_id}" for entry in manifest.hardware)
    return f"{name} was trained on measurements of{''.join(ids)}"


def publish(
    what: Annotated[str, typer.Argument(help="A bundle's name or folder, or a dataset's folder.")],
    to: Annotated[
        str,
        typer.Option(help="`hf://user/name`, `s3://bucket/name` or the like, or a folder."),
    ],
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Take the place of another bundle or dataset there."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy a bundle or a dataset to where others can load it from.

    Example: `costlib publish my-bundle --to hf://me/my-bundle`
    """
    from costlib.data.dataset import Dataset
    from costlib.data.manifest import MANIFEST
    from costlib.data.remote import publish_dataset
    from costlib.hub import load_pretrained
    from costlib.hub.remote import publish as publish_bundle

    if (Path(what) / MANIFEST).is_file():
        kind, use = "dataset", "costlib train"
        address = publish_dataset(Dataset.open(what), to, replace=replace)
    else:
        kind, use = "bundle", "costlib tune NETWORK --pretrained"
        address = publish_bundle(load_pretrained(what), to, replace=replace)
    print_result({kind: address}, as_json, f"published; `{use} {address}` loads it")
