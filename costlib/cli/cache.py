"""``costlib cache``."""

from __future__ import annotations

from typing import Annotated

import typer

from costlib.cli.output import Json, print_json, print_result, print_table

app = typer.Typer(help="Look after what was fetched.", no_args_is_help=True)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the bundles and datasets that were fetched, and say where they are kept.

    Example: `costlib cache list`
    """
    from costlib.remote.address import cache_root
    from costlib.remote.cache import cached_copies

    copies = cached_copies()
    if as_json:
        print_json(copies)
        return
    rows = [
        (copy.kind, copy.address or "-", f"{copy.size_bytes:,}", copy.fetched, copy.folder.name)
        for copy in copies
    ]
    print_table(str(cache_root()), ["kind", "address", ">bytes", "fetched", "folder"], rows)


@app.command("clear")
def clear(
    address: Annotated[
        str | None, typer.Argument(help="What was fetched from there; everything if not given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove what was fetched; it is fetched again when it is asked for.

    Example: `costlib cache clear hf://me/my-bundle`
    """
    from costlib.remote.cache import clear_cache

    removed = clear_cache(address)
    size = sum(copy.size_bytes for copy in removed)
    count = f"{len(removed)} {'copy' if len(removed) == 1 else 'copies'}"
    print_result(removed, as_json, f"{count} of {size:,} bytes removed")
