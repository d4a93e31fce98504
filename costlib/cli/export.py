"""``costlib export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costlib.cli.output import Json, print_json


def export(
    dataset: Annotated[str, typer.Argument(help="The dataset's folder or address.")],
    metaschedule: Annotated[
        Path, typer.Option(help="Folder for the database, which stock TVM opens.")
    ],
    hardware: Annotated[
        str | None, typer.Option(help="Only what was measured on the hardware of this id.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a dataset's programs as a database of MetaSchedule.

    Example: `costlib export my-data --metaschedule database/`
    """
    from costlib.data.dataset import Dataset
    from costlib.logs.export import export_metaschedule

    report = export_metaschedule(Dataset.open(dataset), metaschedule, hardware_id=hardware)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    typer.echo(f"{metaschedule}: {report.exported} of {report.records} measurements")
    for reason, count in report.skipped.items():
        typer.echo(f"{count} skipped: {reason}")
