"""What the commands print: tables for people, JSON for machines, progress on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value on stdout, for machines.")]


def print_json(value: Any) -> None:
    """Print a value, which may hold pydantic models, as one line of JSON."""
    typer.echo(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def print_result(value: Any, as_json: bool, text: str) -> None:
    """Print what a command has done: a value for machines, a line of text for people."""
    if as_json:
        print_json(value)
    else:
        typer.echo(text)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table, or that it has no rows; columns that start with ``>`` are right-aligned."""
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    if not rows:
        typer.echo(f"{title}: none")
        return
    table = Table(title=title, title_justify="left")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        table.add_column(column.removeprefix(">"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    Console().print(table)


def milliseconds(seconds: float | None) -> str:
    """Format a latency, ``-`` if there is none."""
    return "-" if seconds is None else f"{seconds * 1e3:.3f} ms"
