"""``costlib hardware``."""

from __future__ import annotations

from costlib.cli.options import Cores, Mcpu, Target, chosen_hardware
from costlib.cli.output import Json, print_json, print_table


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
