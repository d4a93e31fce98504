"""``costlib dashboard``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costlib.errors import InputError


def dashboard(
    folder: Annotated[Path, typer.Argument(help="What holds runs, datasets and bundles.")],
    host: Annotated[
        str,
        typer.Option(help="Where to listen; elsewhere than here, the address holds a token."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for any free one.", min=0, max=65535)] = 8400,
) -> None:
    """Show all runs, datasets and bundles under a folder in a browser, live while they grow.

    Nothing is written, and nothing outside the folder is shown. Ctrl-C ends it.

    Example: `costlib dashboard runs`
    """
    try:
        from costlib.dashboard.server import serve
    except ImportError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise InputError("the dashboard needs a server: pip install 'costlib[dashboard]'") from None
    serve(folder, host, port, lambda address: typer.echo(f"{folder} is shown at {address}"))
