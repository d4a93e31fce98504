"""``costlib dataset``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.options import Seed
from costlib.cli.output import Json, milliseconds, print_json, print_result, print_table

if TYPE_CHECKING:
    from costlib.data.dataset import Dataset
    from costlib.data.summary import DatasetSummary

app = typer.Typer(help="Look after datasets.", no_args_is_help=True)

Folder = Annotated[Path, typer.Argument(help="The dataset's folder.")]
Place = Annotated[str, typer.Argument(help="The dataset's folder or address.")]
NewFolder = Annotated[Path, typer.Option(help="Folder of the new dataset.")]

_MAX_ROWS = 30
"""Operators shown in the terminal."""


@app.command("info")
def info(
    path: Place,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the coverage into this .png or .svg file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a dataset holds, and how well it covers its tasks.

    Example: `costlib dataset info datasets/zoo --plot coverage.png`
    """
    from costlib.data.dataset import Dataset
    from costlib.data.summary import summarize

    dataset = Dataset.open(path)
    if plot is not None:
        from costlib.report.coverage import draw_coverage

        draw_coverage(dataset, plot)
    summary = summarize(dataset)
    if as_json:
        print_json(summary)
        return
    _print_counts(summary)
    _print_coverage(dataset)
    if plot is not None:
        typer.echo(f"drawn: {plot}")


@app.command("verify")
def verify(path: Place, as_json: Json = False) -> None:
    """Prove a dataset sound, or name what is not; exits with 1 if anything is wrong.

    Example: `costlib dataset verify datasets/zoo`
    """
    from costlib.data.dataset import Dataset
    from costlib.data.verify import verify as check

    problems = check(Dataset.open(path))
    lines = [f"{problem.file}: {problem.what}; {problem.mend}" for problem in problems]
    lines.append(f"{path}: {len(problems) or 'no'} problem{'s' * (len(problems) != 1)}")
    print_result(problems, as_json, "\n".join(lines))
    raise typer.Exit(1 if problems else 0)


@app.command("merge")
def merge(
    paths: Annotated[list[str], typer.Argument(help="The datasets' folders or addresses.")],
    out: NewFolder,
    as_json: Json = False,
) -> None:
    """Copy several datasets into one; called again, it ends what was interrupted.

    Example: `costlib dataset merge monday tuesday --out week`
    """
    from costlib.data.card import write_card
    from costlib.data.dataset import Dataset
    from costlib.data.merge import merge as run

    done = run(paths, out)
    write_card(Dataset.open(out))
    text = (
        f"{out}: {done.measurements:,} measurements added, {done.heldout_measurements:,} of "
        f"held-out tasks, {done.repeated:,} were there already, {done.corrected:,} corrected anew"
    )
    if done.left_out:
        text += f"\n{len(done.left_out)} tasks are kept as held out only"
    print_result(done, as_json, text)


@app.command("compact")
def compact(
    path: Folder,
    drop_duplicates: Annotated[
        bool,
        typer.Option(
            "--drop-duplicates", help="Also keep once what `verify` found to be there twice."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Put few large parts in the place of many small ones; others may read and append meanwhile.

    Example: `costlib dataset compact datasets/zoo`
    """
    from costlib.data.card import write_card
    from costlib.data.compact import compact as run
    from costlib.data.dataset import Dataset

    dataset = Dataset.create(Dataset.open(path).path)
    done = run(dataset, drop_duplicates=drop_duplicates)
    write_card(dataset)
    text = f"{done.dropped:,} repeated rows dropped\n" if drop_duplicates else ""
    text += (
        f"{path}: {done.parts_before} parts of {done.bytes_before:,} bytes became "
        f"{done.parts_after} of {done.bytes_after:,}"
    )
    print_result(done, as_json, text)


@app.command("sample")
def sample(
    path: Place,
    out: NewFolder,
    programs_per_task: Annotated[
        int, typer.Option(help="At most this many programs of each task on each hardware.")
    ],
    tasks: Annotated[
        int | None, typer.Option(help="At most this many tasks; all by default.")
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Make a smaller dataset that is complete in itself.

    Example: `costlib dataset sample datasets/zoo --out small --programs-per-task 4`
    """
    from costlib.data.card import write_card
    from costlib.data.sample import sample as run
    from costlib.data.summary import summarize

    smaller = run(path, out, programs_per_task, tasks, seed)
    write_card(smaller)
    summary = summarize(smaller)
    text = f"{out}: {summary.measurements:,} measurements of {summary.tasks:,} tasks"
    print_result(summary, as_json, text)


def _print_counts(summary: DatasetSummary) -> None:
    values = summary.model_dump(mode="json", exclude={"tasks_by_operator"})
    rows = [(key.replace("_", " "), _readable(value)) for key, value in values.items()]
    print_table(summary.path, ["property", "value"], rows)


def _readable(value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{name}: {_readable(count)}" for name, count in value.items())
        case list():
            return ", ".join(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
    return "-" if value is None else str(value)


def _print_coverage(dataset: Dataset) -> None:
    from costlib.data import coverage

    print_table(
        "hardware",
        ["id", ">tasks", ">programs", ">failed", "from", "to"],
        coverage.by_hardware(dataset)
        .select("hardware", "tasks", "programs", "failed", "first_day", "last_day")
        .iter_rows(),
    )
    operators = coverage.by_operator(dataset)
    print_table(
        "operators: best latency of the fastest and the slowest task, median latency / best",
        ["operator", ">tasks", ">programs", ">failed", ">fastest", ">slowest", ">spread"],
        (
            (
                *(row[name] for name in ("operator", "tasks", "programs", "failed")),
                milliseconds(row["best_s"]),
                milliseconds(row["worst_s"]),
                "-" if row["median_ratio"] is None else f"{row['median_ratio']:.2f}",
            )
            for row in operators.head(_MAX_ROWS).iter_rows(named=True)
        ),
    )
    if len(operators) > _MAX_ROWS:
        typer.echo(f"and {len(operators) - _MAX_ROWS} operators more")
    failed = coverage.failures(dataset)
    if not failed.is_empty():
        print_table("failures", ["status", ">programs", "most frequent error"], failed.iter_rows())
