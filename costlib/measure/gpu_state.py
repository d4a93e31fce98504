"""What an NVIDIA GPU is doing: its clocks, what slows it down, and who else is at work there.

Asked of ``nvidia-smi``, which comes with the driver.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from costlib.frozen import Frozen

_FIELDS = "clocks.sm,clocks.max.sm,temperature.gpu,clocks_throttle_reasons.active"
_OTHERS = "pid,process_name,used_memory"
_SECS = 20.0

_IDLE = 1
"""The bit of the reasons that says that there is nothing to do."""

_MOVED = 1.05


class GpuState(Frozen):
    """A moment of a GPU.

    Attributes
    ----------
    sm_mhz, most_mhz
        Clock of the multiprocessors, and its highest.
    celsius
        Temperature.
    throttled
        What keeps the clock down, as the bits that ``nvidia-smi`` shows; 0 if nothing does.
    """

    sm_mhz: int
    most_mhz: int
    celsius: int
    throttled: int


def gpu_state() -> GpuState | None:
    """Look at the first GPU; ``None`` where nobody can say."""
    lines = _asked(f"--query-gpu={_FIELDS}")
    try:
        clock, most, celsius, reasons = lines[0]
        throttled = int(reasons, 16) & ~_IDLE
        return GpuState(
            sm_mhz=int(clock), most_mhz=int(most), celsius=int(celsius), throttled=throttled
        )
    except (IndexError, ValueError):
        return None


def others_on_gpu(ours: Sequence[int]) -> str | None:
    """Say in a line which other processes are at work on the GPU; ``None`` if none is known.

    Parameters
    ----------
    ours
        Ids of processes that belong to us.
    """
    found = [row for row in _asked(f"--query-compute-apps={_OTHERS}") if len(row) == 3]
    names = [
        f"{name} (pid {pid}, {mib} MiB)" for pid, name, mib in found if pid not in map(str, ours)
    ]
    if not names:
        return None
    return (
        f"another process is on the GPU: {', '.join(names)}; what is measured meanwhile is doubtful"
    )


def moved(before: GpuState | None, after: GpuState | None) -> str | None:
    """Say in a line that a GPU's clock was not the same throughout; ``None`` if it was."""
    if before is None or after is None:
        return None
    slow, fast = sorted((before.sm_mhz, after.sm_mhz))
    if fast <= _MOVED * slow and not after.throttled:
        return None
    why = f", throttled (0x{after.throttled:x}, {after.celsius} C)" if after.throttled else ""
    return f"the GPU's clock went from {before.sm_mhz} to {after.sm_mhz} MHz meanwhile{why}"


def _asked(query: str) -> list[list[str]]:
    """Return the fields of each line of an answer; nothing if there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        done = subprocess.run(
            [program, query, "--format=csv,noheader,nounits", "--id=0"],
            check=True,
            capture_output=True,
            text=True,
            timeout=_SECS,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [[field.strip() for field in line.split(",")] for line in done.stdout.splitlines()]
