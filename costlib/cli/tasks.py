"""``costlib tasks``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from costlib.cli.options import (
    Cores,
    LayoutsOption,
    Mcpu,
    Target,
    chosen_hardware,
    chosen_layouts,
)
from costlib.cli.output import Json, print_json, print_table
from costlib.errors import UnsupportedModelError
from costlib.workloads.layout_choice import Layouts

_MOST_SECS = 1800

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
    layouts: LayoutsOption = "channels-last",
    as_json: Json = False,
) -> None:
    """List what a network consists of; without a source, list the networks and operators.

    Example: `costlib tasks resnet_18`
    """
    if source is None:
        _list_sources(as_json)
        return
    found = _extracted(source, target, mcpu, cores, chosen_layouts(layouts))
    if as_json:
        print_json(found)
        return
    rows = [
        (task["title"], task["weight"], f"{task['flops'] / 1e6:.2f}", task["workload_id"])
        for task in found
    ]
    print_table(f"tasks of {source}", ["task", ">calls", ">MFLOP", "workload_id"], rows)


def _extracted(
    source: str, target: str, mcpu: str | None, cores: int | None, layouts: Layouts
) -> list[dict[str, Any]]:
    """Let a child import the network: TVM or PyTorch may die of it."""
    from costlib.cli.child import in_child

    def work() -> str:
        from costlib.cli.task_list import list_tasks

        return json.dumps(list_tasks(source, chosen_hardware(target, mcpu, cores), layouts))

    text, death = in_child(work, _MOST_SECS)
    if text is None:
        raise UnsupportedModelError(f"{source}: {death}")
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _list_sources(as_json: bool) -> None:
    from costlib.workloads.operators import list_operators
    from costlib.workloads.zoo import HELD_OUT, list_networks

    if as_json:
        print_json({"networks": list_networks(), "operators": list_operators()})
        return
    rows = [(n, "held out: never trained on" if n in HELD_OUT else "") for n in list_networks()]
    print_table("networks", ["name", ""], rows)
    print_table("operators", ["usage"], [(usage,) for usage in list_operators()])
