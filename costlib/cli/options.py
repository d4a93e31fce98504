"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from costlib.hardware import Hardware

Mcpu = Annotated[
    str | None,
    typer.Option(
        help="LLVM processor or level to generate code for, e.g. `x86-64-v2`; "
        "the best this machine runs by default.",
        show_default=False,
    ),
]
Cores = Annotated[
    int | None,
    typer.Option(help="Cores that a program may use; all by default.", show_default=False),
]
Seed = Annotated[int, typer.Option(help="The same seed draws the same programs.")]


def local_hardware(mcpu: str | None, cores: int | None) -> Hardware:
    """Describe this machine with the options given."""
    from costlib.hardware import Hardware

    return Hardware.local(mcpu=mcpu, num_cores=cores)
