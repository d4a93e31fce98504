"""``costlib models``."""

from __future__ import annotations

from typing import Annotated

import typer

from costlib.cli.output import Json, print_json, print_table


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
        print_json([manifest.model_dump(mode="json") for manifest in manifests])
        return
    rows = [
        (
            manifest.name,
            manifest.model_kind,
            manifest.trained_on.programs,
            manifest.trained_on.tasks,
            f"{manifest.metrics['top1_task_mean']:.3f}",
            f"{manifest.metrics['top5_task_mean']:.3f}",
            "\n".join(entry.hardware.hardware_id for entry in manifest.hardware),
        )
        for manifest in manifests
    ]
    columns = ["name", "model", ">programs", ">tasks", ">top-1", ">top-5", "hardware"]
    print_table("bundles", columns, rows)
