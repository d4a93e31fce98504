"""``costlib report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costlib.cli.output import Json, print_result


def report(
    target: Annotated[
        str, typer.Argument(help="The folder of a run, a dataset or a bundle; or a bundle's name.")
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
    """Write a page about a run, a dataset or a bundle that opens in any browser, offline.

    Example: `costlib report runs/bert_tiny --out bert_tiny.html`
    """
    from costlib.places import check_writable
    from costlib.report import report as describe
    from costlib.report.page import save_page, save_pictures

    for place in (out, *([] if figures is None else [figures / "curve.png"])):
        check_writable(place)
    page = describe(target, against)
    save_page(page, out)
    pictures = save_pictures(page, figures) if figures is not None else []
    print_result({"page": out, "figures": pictures}, as_json, f"written: {out}")
