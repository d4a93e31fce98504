"""``costlib import`` and ``costlib export``: logs of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costlib.cli.output import Json, print_json, print_result, print_table
from costlib.cli.progress import progress_bar
from costlib.errors import InputError


def import_(
    logs: Annotated[
        list[Path],
        typer.Argument(
            help="MetaSchedule databases (JSON or SQLite), logs of Ansor or AutoTVM, or folders."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The dataset's folder; made if it does not exist.")],
    workloads: Annotated[
        Path | None,
        typer.Option(help="The log's workloads, if their file is not named like it or elsewhere."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Import tuning logs of other tools and older TVMs; called again, it adds what is missing.

    Example: `costlib import work_dir/ ansor.log --out my-data`
    """
    from costlib.data.card import write_card
    from costlib.data.dataset import Dataset
    from costlib.logs.importers import ALREADY_THERE, import_logs

    with progress_bar("importing") as bar:

        def show(file: Path) -> None:
            bar(advance=1, description=file.name)

        report = import_logs(logs, out, workloads=workloads, on_file=show)
    if report.imported:
        write_card(Dataset.open(out))
    if as_json:
        print_json(report)
    else:
        print_table(
            str(out),
            ("file", "format", ">records", ">imported", ">failed", "skipped"),
            (
                (
                    file.file,
                    ", ".join(file.formats) or "-",
                    file.records,
                    file.imported,
                    file.failed_measurements,
                    "; ".join(f"{count} {reason}" for reason, count in file.skipped.items()),
                )
                for file in report.files
            ),
        )
        typer.echo(
            f"{report.imported} of {report.records} records imported, "
            f"{report.failed_measurements} of them failed measurements"
        )
    if not report.imported and ALREADY_THERE not in report.skipped:
        reasons = "; ".join(f"{count} {reason}" for reason, count in report.skipped.items())
        raise InputError(f"nothing could be imported: {reasons or 'there are no files'}")


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
    lines = [f"{metaschedule}: {report.exported} of {report.records} measurements"]
    lines += [f"{count} skipped: {reason}" for reason, count in report.skipped.items()]
    print_result(report, as_json, "\n".join(lines))
