"""``costlib doctor``, ``costlib hardware`` and ``costlib serve``: this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from costlib.cli.options import Cores, Mcpu, Target, chosen_hardware
from costlib.cli.output import Json, print_json, print_result, print_table


def doctor(target: Target = "cpu", as_json: Json = False) -> None:
    """Say whether this machine is fit to tune on, and what to do about it.

    Example: `costlib doctor`

    Example: `costlib doctor --target aarch64`
    """
    from costlib.measure.doctor import examine, examine_target

    findings = list(examine() if target == "cpu" else examine_target(target))
    if as_json:
        print_json([finding._asdict() for finding in findings])
    else:
        rows = [(f.check, f.value, f.advice or "fine") for f in findings]
        what = "this machine" if target == "cpu" else f"this machine, for {target}"
        print_table(what, ["check", "found", "advice"], rows)
    if any(finding.fatal for finding in findings):
        raise typer.Exit(1)


def hardware(
    target: Target = "cpu", mcpu: Mcpu = None, cores: Cores = None, as_json: Json = False
) -> None:
    """Describe this machine as measurements and bundles name it.

    Example: `costlib hardware --mcpu x86-64-v2`
    """
    found = chosen_hardware(target, mcpu, cores)
    values = {"hardware_id": found.hardware_id, **found.model_dump()}
    if as_json:
        print_json(values)
    else:
        print_table("hardware", ["property", "value"], values.items())


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
    as_json: Json = False,
) -> None:
    """Offer this machine as a device of a fleet, until it is interrupted.

    TVM's RPC runs whatever it is sent: use it in a network that you trust.

    Example: `costlib serve --tracker 10.0.0.1:9190 --key epyc`
    """
    from costlib.measure.device import Tracker, start_device

    place = Tracker.parse(tracker, key)
    hardware = chosen_hardware(target, mcpu, cores)
    server = start_device(place, hardware, address)
    offer = {"hardware_id": hardware.hardware_id, "tracker": tracker, "key": key}
    text = f"{hardware.hardware_id} is offered to {tracker} as '{key}'; Ctrl-C to stop"
    print_result(offer, as_json, text)
    try:
        server.proc.join()
    except KeyboardInterrupt:
        server.terminate()
