"""What the steps share: the device, real or simulated, and how much is done on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from costlib.hardware import Hardware
from costlib.measure.config import MeasureConfig
from costlib.measure.measurer import Measurer
from costlib.tuning.workplace import measurer_for

_REHEARSED = 4
"""Programs that a rehearsal measures of whatever it is."""

_CORES, _L2_BYTES = 132, 50 << 20
"""Of the GPU that a rehearsal takes place of, an H100."""


@dataclass(frozen=True)
class Bench:
    """A device and a folder for what is found.

    Attributes
    ----------
    hardware
        The device; a simulated one in a rehearsal.
    out
        The folder.
    """

    hardware: Hardware
    out: Path

    @classmethod
    def here(cls, out: Path) -> Bench:
        """Take this machine's GPU; raise ``TargetError`` if it has none."""
        return cls(Hardware.local_cuda(), out)

    @classmethod
    def rehearsal(cls, arch: str, out: Path) -> Bench:
        """Take a simulated GPU of an architecture."""
        described = Hardware.cuda(arch, model="rehearsed", num_cores=_CORES, l2_bytes=_L2_BYTES)
        return cls(described.simulated(), out)

    @property
    def is_rehearsal(self) -> bool:
        """Whether nothing is measured."""
        return self.hardware.is_simulated

    def measurer(self, **settings: Any) -> Measurer:
        """Start what measures programs, with some settings changed."""
        return measurer_for(self.hardware, self.config(**settings), None, None)

    def config(self, **settings: Any) -> MeasureConfig:
        """Return how programs are measured: compiling one for a GPU takes long."""
        return MeasureConfig(build_timeout_secs=60).model_copy(update=settings)

    def programs(self, count: int) -> int:
        """Return how many of so many programs are measured."""
        return min(count, _REHEARSED) if self.is_rehearsal else count


Step = Callable[[Bench], Any]
"""Finds something out, and returns it as JSON; called again, it goes on where it was stopped."""


def microseconds(seconds: Any) -> float | None:
    """Return seconds as microseconds of four digits."""
    return None if seconds is None else float(f"{seconds * 1e6:.4g}")
