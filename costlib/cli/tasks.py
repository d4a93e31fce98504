"""``costlib tasks``."""

from __future__ import annotations

from typing import Annotated

import typer

from costlib.cli.options import Cores, Mcpu, Target, chosen_hardware
from costlib.cli.output import Json, print_json, print_table

Source = Annotated[
    str | None,
    typer.Argument(
        help="A network of the zoo (`resnet_18`), an operator with its shape "
        "(`matmul 384 768 3072`), or a file: ONNX, a saved torch.export program, TVMScript.",
        show_default=False,
    ),
]


def tasks(
    source: Source = None,
    target: Target = "cpu",
    mcpu: Mcpu = None,
    cores: Cores = None,
    as_json: Json = False,
) -> None:
    """List what a network consists of; without a source, list the networks and operators.

    Example: `costlib tasks resnet_18`
    """
    if source is None:
        _list_sources(as_json)
        return
    from costlib.cli.child import survive_import

    survive_import([source])
    from costlib.workloads import extract_tasks

    found = extract_tasks(source, chosen_hardware(target, mcpu, cores))
    if as_json:
        keys = ("workload_id", "name", "title", "weight", "flops", "arguments")
        print_json([{key: getattr(task, key) for key in keys} for task in found])
        return
    rows = [(t.title, t.weight, f"{t.flops / 1e6:.2f}", t.workload_id) for t in found]
    print_table(f"tasks of {source}", ["task", ">calls", ">MFLOP", "workload_id"], rows)


def _list_sources(as_json: bool) -> None:
    from costlib.workloads.operators import list_operators
    from costlib.workloads.zoo import HELD_OUT, list_networks

    if as_json:
        print_json({"networks": list_networks(), "operators": list_operators()})
        return
    rows = [(n, "held out: never trained on" if n in HELD_OUT else "") for n in list_networks()]
    print_table("networks", ["name", ""], rows)
    print_table("operators", ["usage"], [(usage,) for usage in list_operators()])
