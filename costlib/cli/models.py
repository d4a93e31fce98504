"""``costlib models`` and ``costlib publish``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costlib.cli.output import Json, print_json, print_result, print_table


def models(
    pattern: Annotated[str, typer.Argument(help="A shell pattern, e.g. `cpu-*`.")] = "*",
    as_json: Json = False,
) -> None:
    """List the bundles that come with costlib.

    Example: `costlib models "cpu-*"`
    """
    from costlib.hub import Bundle, list_bundles

    manifests = [Bundle.load(path).manifest for path in list_bundles(pattern).values()]
    if as_json:
        print_json(manifests)
        return
    rows = [
        (
            manifest.name,
            manifest.model_kind,
            manifest.trained_on.programs,
            manifest.trained_on.tasks,
            f"{manifest.metrics['top1']:.3f}",
            f"{manifest.metrics['top5']:.3f}",
            "\n".join(entry.hardware.hardware_id for entry in manifest.hardware),
        )
        for manifest in manifests
    ]
    columns = ["name", "model", ">programs", ">tasks", ">top-1", ">top-5", "hardware"]
    print_table("bundles", columns, rows)


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
