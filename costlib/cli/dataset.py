"""``costlib dataset``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costlib.cli.output import Json, print_json, print_table

app = typer.Typer(help="Look at datasets.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The dataset's folder.")]


@app.command("info")
def info(path: Folder, as_json: Json = False) -> None:
    """Say what a dataset holds.

    Example: `costlib dataset info datasets/cpu-sample`
    """
    from costlib.data.dataset import Dataset
    from costlib.data.summary import summarize

    values = summarize(Dataset.open(path)).model_dump(mode="json")
    if as_json:
        print_json(values)
        return
    rows = []
    for key, value in values.items():
        is_count = isinstance(value, dict)
        text = ", ".join(f"{name}: {n}" for name, n in value.items()) if is_count else value
        rows.append((key, text))
    print_table(str(path), ["property", "value"], rows)


@app.command("verify")
def verify(path: Folder, as_json: Json = False) -> None:
    """Prove a dataset sound, or name what is not; exits with 1 if anything is wrong.

    Example: `costlib dataset verify datasets/cpu-sample`
    """
    from costlib.data.dataset import Dataset
    from costlib.data.verify import verify as check

    problems = check(Dataset.open(path))
    if as_json:
        print_json([problem.model_dump(mode="json") for problem in problems])
    else:
        for problem in problems:
            typer.echo(f"{problem.file}: {problem.what}; {problem.mend}")
        typer.echo(f"{path}: {len(problems) or 'no'} problem{'s' * (len(problems) != 1)}")
    raise typer.Exit(1 if problems else 0)
