"""``costlib generate``."""

from __future__ import annotations

from typing import Annotated

import typer

from costlib.cli.options import Cores, Mcpu, Seed, chosen_hardware
from costlib.cli.output import Json, print_json, print_table


def generate(
    source: Annotated[
        str, typer.Argument(help="A network, an operator (quoted) or a file, as for `tasks`.")
    ],
    count: Annotated[int, typer.Option("-n", "--count", help="Programs to write.")] = 16,
    pretrained: Annotated[
        str, typer.Option(help="The bundle: a name, a folder, or an address like hf://me/mine.")
    ] = "cpu-gbdt",
    temperature: Annotated[
        float, typer.Option(help="Below 1 the likely becomes likelier; 0 is the likeliest.")
    ] = 1.0,
    seed: Seed = 0,
    mcpu: Mcpu = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """Write good programs of a source's heaviest task with a bundle's generator.

    Nothing is measured; the bundle's cost model ranks what was written, among as many random
    programs: some of those may be better.

    Example: `costlib generate "matmul 384 768 3072" -n 8`
    """
    from costlib.generator.generate import generate as run
    from costlib.hub import load_pretrained

    bundle = load_pretrained(pretrained)
    hardware = chosen_hardware("cpu", mcpu, cores)
    found = run(
        source,
        bundle.require_generator(),
        bundle.statement_model(),
        hardware,
        count,
        draft=bundle.draft,
        canary=bundle.canary(hardware.hardware_id),
        seed=seed,
        temperature=temperature,
    )
    if found.notice:
        typer.echo(f"costlib: {found.notice}", err=True)
    if as_json:
        print_json(found)
        return
    rows = [
        (number, f"{program.score:.3f}", program.origin, program.sketch_id[:8], program.decisions)
        for number, program in enumerate(found.programs, start=1)
    ]
    title = (
        f"{found.task}: the best of {found.written} written and {found.drawn} random programs; "
        f"{found.valid} of {found.lowered} are valid"
    )
    print_table(title, [">", ">score", "origin", "sketch", "decisions"], rows)
