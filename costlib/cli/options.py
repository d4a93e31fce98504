"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from costlib.hardware import Hardware

Target = Annotated[
    str,
    typer.Option(
        help="`cpu` or `cuda` of this machine, or `cuda:sm_80` for a GPU that need not be here."
    ),
]
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


def chosen_hardware(target: str, mcpu: str | None, cores: int | None) -> Hardware:
    """Find the hardware that the options name."""
    from costlib.hardware import find_hardware

    return find_hardware(target, mcpu=mcpu, num_cores=cores)


def local_hardware(mcpu: str | None, cores: int | None) -> Hardware:
    """Describe this machine's CPU with the options given."""
    return chosen_hardware("cpu", mcpu, cores)
