"""``costlib check``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from costlib.cli.options import (
    Cores,
    Dim,
    LayoutsOption,
    Mcpu,
    chosen_hardware,
    chosen_layouts,
)
from costlib.cli.output import Json, print_json, print_table
from costlib.errors import CostlibError

_MOST_SECS = 3600
EXIT_CODES = {"right": 0, "different": 1, "unsupported": 2}


def check(
    source: Annotated[str, typer.Argument(help="A network, operator (quoted) or file.")],
    dim: Dim = None,
    mcpu: Mcpu = None,
    cores: Cores = None,
    layouts: LayoutsOption = "channels-last",
    as_json: Json = False,
) -> None:
    """Import a network, compile it untuned and compare it with the original.

    The original is PyTorch for a `.pt2` file, ONNX Runtime or onnx's own evaluator for an `.onnx`
    file. The exit code is 0 if the network is right, 1 if it computes something different, and 2
    if it is not supported.

    Example: `costlib check model.onnx`
    """
    from costlib.cli.child import in_child
    from costlib.workloads.ranges.dimension import parse_dims

    dims = parse_dims(dim or [])
    wanted = chosen_layouts(layouts)

    def work() -> str:
        from costlib.tuning.check import Check
        from costlib.tuning.check import check as run

        try:
            found = run(
                source,
                hardware=chosen_hardware("cpu", mcpu, cores),
                dim=dims,
                layouts=wanted,
            )
        except CostlibError as error:
            found = Check(network=source, status="unsupported", reason=str(error))
        return found.model_dump_json()

    text, death = in_child(work, _MOST_SECS)
    found = _unsupported(source, f"{source}: {death}") if text is None else json.loads(text)
    if as_json:
        print_json(found)
    else:
        _print(found)
    raise typer.Exit(EXIT_CODES[found["status"]])


def _unsupported(source: str, reason: str) -> dict[str, Any]:
    """What :class:`costlib.tuning.check.Check` would be, without TVM."""
    return {
        "network": source,
        "status": "unsupported",
        "reason": reason,
        "max_abs_error": None,
        "outputs": [],
        "inputs": None,
        "unsupported_operators": [],
        "tasks": [],
        "rounding_error": None,
        "shapes": [],
    }


def _print(found: dict[str, Any]) -> None:
    if found["outputs"]:
        rows = [
            (
                output["name"],
                f"{output['dtype']}{output['shape']}",
                "-" if output["max_abs_error"] is None else f"{output['max_abs_error']:.2e}",
                output["fault"] or "right",
            )
            for output in found["outputs"]
        ]
        columns = ["output", "type", ">largest difference", ""]
        print_table(f"{found['network']}, with {found['inputs']}", columns, rows)
    if found["shapes"]:
        shapes = [
            (
                _text(one["sizes"]),
                _text(one["served_by"]),
                "-" if one["max_abs_error"] is None else f"{one['max_abs_error']:.2e}",
            )
            for one in found["shapes"]
        ]
        print_table("shapes", ["shape", "computed by that of", ">largest difference"], shapes)
    count = len(found["tasks"])
    line = f"{found['network']}: {found['status']}"
    if found["status"] == "right":
        note = f" ({found['reason']})" if found["reason"] else ""
        typer.echo(f"{line}{note}; {count} tasks to tune")
        if (error := found["rounding_error"]) is not None:
            typer.echo(f"rounding changes outputs by up to {error:.2e}")
    else:
        typer.echo(f"{line}: {found['reason']}")


def _text(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name}={extent}" for name, extent in sizes.items())
