"""``costlib models`` and ``costlib publish``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from costlib.cli.output import Json, print_json, print_result, print_table

_log = logging.getLogger(__name__)


def models(
    pattern: Annotated[str, typer.Argument(help="A shell pattern, e.g. `cpu-*`.")] = "*",
    as_json: Json = False,
) -> None:
    """List the bundles that come with costlib.

    Example: `costlib models "cpu-*"`
    """
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
    rows = [
        (
            manifest.name,
            manifest.model_kind,
            f"{manifest.trained_on.programs:,}",
            manifest.trained_on.tasks,
            manifest.metrics["tasks"],
            f"{manifest.metrics['top1']:.3f}",
            f"{manifest.metrics['top5']:.3f}",
        )
        for manifest in manifests
    ]
    columns = ["name", "model", ">programs", ">tasks", ">judged on", ">top-1", ">top-5"]
    print_table("bundles", columns, rows)
    for manifest in manifests:
        ids = (f"\n  {entry.hardware.hardware_id}" for entry in manifest.hardware)
        typer.echo(f"{manifest.name} was trained on measurements of{''.join(ids)}")


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
