"""``costlib profile``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from costlib.cli.output import Json, milliseconds, print_json, print_table

if TYPE_CHECKING:
    from costlib.tuning.profile import KernelProfile, NetworkProfile


def profile(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    picture: Annotated[
        Path | None, typer.Option(help="Also draw the kernels in time, to this PNG or SVG file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say where the time of a run's compiled networks goes, kernel by kernel, as they run.

    It is kept in the run's folder, for `costlib report`.

    Example: `costlib profile runs/bert_tiny --picture timeline.png`
    """
    from costlib.tuning.profile import profile_run

    profiles = profile_run(run).networks
    if picture is not None:
        from costlib.report.timeline import draw_timelines

        draw_timelines(profiles, picture)
    if as_json:
        only = profiles[0] if len(profiles) == 1 else list(profiles)
        print_json(only)
        return
    for network in profiles:
        _print(network)


def _print(network: NetworkProfile) -> None:
    rows = [_row(calls, network.network_s) for calls in network.by_task()]
    columns = [
        "task", ">calls", ">share", ">in the network", ">as tuned", ">GFLOP/s", ">GB/s",
    ]  # fmt: skip
    print_table(f"{network.network}: {milliseconds(network.network_s)}", columns, rows)
    lines = {
        "kernels as tuned": network.tasks_s,
        "dispatch": network.dispatch_s,
        "slower in the network": network.unexplained_s,
        "the network": network.network_s,
    }
    print_table(
        "where it goes", ["", ">"], [(what, milliseconds(secs)) for what, secs in lines.items()]
    )
    typer.echo(
        f"the machine reads {network.memory_bytes_per_s / 1e9:.1f} GB/s; "
        f"noting the times took {network.tracing:.1%}"
    )


def _row(calls: list[KernelProfile], network_s: float) -> tuple[str, ...]:
    from costlib.tuning.profile import total_s

    latency_s, first = total_s(calls) / len(calls), calls[0]
    return (
        first.name,
        str(len(calls)),
        f"{total_s(calls) / network_s:.1%}",
        milliseconds(latency_s),
        milliseconds(first.tuned_s),
        f"{first.flops / latency_s / 1e9:.1f}",
        f"{first.nbytes / latency_s / 1e9:.1f}",
    )
