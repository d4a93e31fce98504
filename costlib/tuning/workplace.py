"""Who measures and who compiles for a run: for real, or for a device that is only simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costlib.canary_times import CanaryTimes
from costlib.errors import InputError
from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.device_here import check_device
from costlib.measure.measurer import Measurer
from costlib.testing.simulated_measurer import SimulatedMeasurer
from costlib.tuning.compiling import Compiler
from costlib.tuning.config import TuneConfig
from costlib.tuning.engines.catalogue import check_engines
from costlib.tuning.untimed import UntimedCompiler
from costlib.tuning.vendor import check_vendor

if TYPE_CHECKING:
    from costlib.measure.fleet import Fleet


def measurer_for(
    hardware: Hardware,
    config: MeasureConfig,
    reference: CanaryTimes | None,
    fleet: Fleet | None,
) -> Measurer:
    """Return what measures on some hardware, see :class:`costlib.measure.measurer.Measurer`."""
    if hardware.is_simulated:
        return SimulatedMeasurer(hardware, config)
    return Measurer(hardware, config, reference, fleet.pool(hardware) if fleet else None)


def compiler_for(hardware: Hardware) -> type[Compiler]:
    """Return what compiles the networks of a run on some hardware."""
    return UntimedCompiler if hardware.is_simulated else Compiler


def tuned_for(hardware: Hardware | None, fleet: Fleet | None, config: TuneConfig) -> Hardware:
    """Return the hardware of a run: what is given, what the fleet is, or this machine's CPU.

    Raises
    ------
    InputError
        It is simulated, and made-up latencies would spoil what the run is to do, or be no use for
        it; or it is a GPU, where an engine that is asked for does not run; or a vendor's kernels
        are asked for, and cannot be had.
    MeasureError
        It is to be measured on, and is not here.
    """
    hardware = hardware or (fleet.only_hardware() if fleet else Hardware.local())
    check_vendor(config.vendor, hardware, is_here=fleet is None)
    if hardware.is_simulated:
        if fleet is not None:
            raise InputError("a simulated device is on no fleet; leave out --simulate or --tracker")
        if config.memory is not None:
            raise InputError("a memory keeps real latencies; leave out --simulate or --memory")
        if config.against:
            raise InputError("nothing is timed on a simulated device; leave out --against")
    else:
        check_engines(config.against, hardware.kind)
        if fleet is None:
            check_device(hardware, config.measure)
    return hardware
