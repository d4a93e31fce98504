"""``costlib report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costlib.cli.output import Json, print_result
from costlib.errors import InputError


def report(
    targets: Annotated[
        list[str],
        typer.Argument(
            help="The folder of a run, a dataset or a bundle, or a bundle's name; "
            "several are compared."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The page.")] = Path("report.html"),
    against: Annotated[
        Path | None,
        typer.Option(help="Compare a run with another, or with MetaSchedule's work directory."),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(help="Also save its pictures there, as PNG and SVG.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a page about runs, datasets or bundles that opens in any browser, offline.

    Example: `costlib report runs/bert_tiny --out bert_tiny.html`

    Example: `costlib report runs/seed-0 runs/seed-1 runs/cold --out compared.html`
    """
    from costlib.places import check_writable
    from costlib.report import compare
    from costlib.report import report as describe
    from costlib.report.page import save_page, save_pictures

    if against is not None and len(targets) > 1:
        raise InputError("--against compares one run; name all of several runs as arguments")
    for place in (out, *([] if figures is None else [figures / "curve-1-trials.png"])):
        check_writable(place)
    page = describe(targets[0], against) if len(targets) == 1 else compare(targets)
    save_page(page, out)
    pictures = save_pictures(page, figures) if figures is not None else []
    print_result({"page": out, "figures": pictures}, as_json, f"written: {out}")
