"""``costlib doctor``."""

from __future__ import annotations

import typer

from costlib.cli.output import Json, print_json, print_table


def doctor(as_json: Json = False) -> None:
    """Say whether this machine is fit to tune on, and what to do about it.

    Example: `costlib doctor`
    """
    from costlib.measure.doctor import examine

    findings = list(examine())
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        rows = [(f.check, f.value, f.advice or "fine") for f in findings]
        print_table("this machine", ["check", "found", "advice"], rows)
    if any(finding.fatal for finding in findings):
        raise typer.Exit(1)
