"""Whether this machine is the one that labels of a dataset were measured on."""

from __future__ import annotations

from pathlib import Path

from costlib.data.dataset import Dataset
from costlib.errors import TargetError
from costlib.hardware import Hardware
from tools.evidence.files import ZOO


def is_here(hardware: Hardware) -> bool:
    """Whether this machine, or some of its cores, is a hardware."""
    mcpu = hardware.target.get("mcpu")
    try:
        ours = Hardware.local(mcpu=mcpu, num_cores=hardware.num_cores)
    except TargetError:  # It has too few cores, or other instructions.
        return False
    return ours.hardware_id == hardware.hardware_id


def is_labelled_here(dataset: Path = ZOO) -> bool:
    """Whether this machine can be what a dataset's held-out networks were measured on."""
    held_out = Dataset.open(dataset).held_out()
    return held_out is not None and any(map(is_here, held_out.hardware().values()))
