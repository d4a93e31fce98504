"""Whether the device that is to be measured on is one of this machine."""

from __future__ import annotations

import logging
import os

from costlib.errors import MeasureError, TargetError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.gpu_state import others_on_gpu
from costlib.tvm_compat.link import is_foreign

_log = logging.getLogger(__name__)


def check_device(hardware: Hardware, config: MeasureConfig) -> None:
    """Raise unless the device is here and can be measured this way."""
    if hardware.is_simulated:
        raise MeasureError(f"{hardware.hardware_id} is simulated; nothing can be measured on it")
    if hardware.kind == "cpu":
        if is_foreign(str(hardware.target.get("mtriple", ""))):
            raise MeasureError(
                f"this machine is no {hardware.family}; measure on a fleet of such devices "
                "(--tracker), or try the whole path with tune --simulate"
            )
        return
    if hardware.kind != "cuda":
        raise MeasureError(f"measuring on '{hardware.kind}' is not possible; use cpu or cuda")
    try:
        here = Hardware.local_cuda()
    except TargetError as error:
        raise MeasureError(str(error)) from None
    if here.hardware_id != hardware.hardware_id:
        raise MeasureError(
            f"{hardware.hardware_id} is not the GPU that is here, {here.hardware_id}; "
            "measure on that, `--target cuda`"
        )
    if config.flush_cache:
        raise MeasureError("flush_cache empties CPU caches; leave it off on a GPU")
    if (others := others_on_gpu([os.getpid()])) is not None:
        _log.warning("%s", others)
