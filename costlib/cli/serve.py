"""``costlib serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from costlib.cli.options import Cores, Mcpu, Target, chosen_hardware


def serve(
    tracker: Annotated[str, typer.Option(help="HOST:PORT of a TVM RPC tracker.")],
    key: Annotated[str, typer.Option(help="By which clients ask for this kind of device.")],
    address: Annotated[
        str | None,
        typer.Option(help="This machine's name or IP for clients, if not as the tracker sees it."),
    ] = None,
    target: Target = "cpu",
    mcpu: Mcpu = None,
    cores: Cores = None,
) -> None:
    """Offer this machine as a device of a fleet, until it is interrupted.

    TVM's RPC runs whatever it is sent: use it in a network that you trust.

    Example: `costlib serve --tracker 10.0.0.1:9190 --key epyc`
    """
    from costlib.measure.device import Tracker, start_device

    place = Tracker.parse(tracker, key)
    hardware = chosen_hardware(target, mcpu, cores)
    server = start_device(place, hardware, address)
    typer.echo(f"{hardware.hardware_id} is offered to {tracker} as '{key}'; Ctrl-C to stop")
    try:
        server.proc.join()
    except KeyboardInterrupt:
        server.terminate()
