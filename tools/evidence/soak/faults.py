"""What goes wrong: signals, a full disk, a clock that jumps, a disk that is slow.

The first two are done to the processes from outside. For the others a small library is preloaded
(``faults.c``): this machine's own clock and disk stay as they are.
"""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tools.evidence.soak.children import Child, send

KILLED = -signal.SIGKILL
_INTERRUPTED = {130, int(-signal.SIGINT), int(-signal.SIGTERM)}
"""Python ends by SIGINT where that came while it ran code from a string, as dataclasses do."""
_DISK_MIB = 96
_SERVER_SECS = 60

Target = str
"""``"all"`` processes, the one that was started (``"leader"``), or its measuring ``"server"``."""


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes
    ----------
    name
        What.
    target
        Which processes it happens to.
    moment_s, lasts_s
        Seconds after the start of the command; and for how long, where that is limited.
    shift_s
        Seconds by which the clock jumps.
    """

    name: str
    target: Target = "all"
    moment_s: float = 0.0
    lasts_s: float = 0.0
    shift_s: float = 0.0

    @property
    def codes(self) -> set[int]:
        """The exit codes that a command may have to which it happens; the line says the rest."""
        return {0} | {
            "kill": {1} if self.target == "server" else {int(KILLED)},
            "terminate": _INTERRUPTED,
            "full disk": {4},
            "full temporary folder": {1, 4},
        }.get(self.name, set())

    @property
    def needs_small_disk(self) -> bool:
        """Whether the folder that fills up must be on a :class:`SmallDisk`."""
        return self.name.startswith("full")

    def environment(self, library: Path) -> dict[str, str]:
        """Return what to start the command with."""
        slow_s, is_preloaded = self.lasts_s, self.name in ("clock", "slow disk")
        if not is_preloaded:
            return {}
        kind = {"SOAK_SHIFT": str(self.shift_s)} if self.shift_s else {"SOAK_SLOW": str(slow_s)}
        at = time.monotonic() + self.moment_s
        return {"LD_PRELOAD": str(library), "SOAK_AT": str(at)} | kind

    def strike(self, child: Child, fill: Callable[[Child], None]) -> bool:
        """Let it happen when its moment has come; return whether the command was still at work."""
        if self.name == "none" or child.ended_within(self.moment_s):
            return self.name == "none"
        if self.needs_small_disk:
            fill(child)
        elif self.name in ("kill", "stop", "terminate"):
            processes = child.processes()
            if self.target == "leader":
                processes = processes[:1]
            elif self.target == "server":
                processes = child.server(_SERVER_SECS)
            send(processes, _SIGNALS[self.name])
            if self.name == "stop":
                child.ended_within(self.lasts_s)
                send(processes, signal.SIGCONT)
            return bool(processes)
        return True


_SIGNALS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "terminate": signal.SIGTERM}


def draw_fault(rng: random.Random, usual_secs: float, *, has_server: bool) -> Fault:
    """Draw a fault for a command.

    Parameters
    ----------
    rng
        Decides.
    usual_secs
        What the command usually takes: the fault comes at any moment of that.
    has_server
        Whether it measures on the real device, in a process of its own.
    """
    names = ["none", "kill", "kill", "stop", "terminate", "full disk", "clock", "slow disk"]
    targets = ["leader", "all"]
    if has_server:
        names.append("full temporary folder")
        targets.append("server")
    name = rng.choice(names)
    return Fault(
        name,
        target=rng.choice(targets) if name in ("kill", "stop") else "leader",
        moment_s=0.0 if name == "none" else round(rng.uniform(0, usual_secs), 2),
        lasts_s={"stop": round(rng.uniform(1, 20), 1), "slow disk": 0.3}.get(name, 0.0),
        shift_s=rng.choice([-86400, -3600, 3600, 86400]) if name == "clock" else 0.0,
    )


def preloaded(folder: Path) -> Path:
    """Compile the library that shifts clocks and slows disks."""
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    command = ["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    return library


class SmallDisk:
    """A file system of its own that can be filled; whoever may not mount one gets a plain folder.

    Attributes
    ----------
    folder
        Where it is.
    is_mounted
        Whether it is one.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m", "soak", str(folder)]
        self.is_mounted = subprocess.run(command, check=False, capture_output=True).returncode == 0
        self._ballast = folder / "ballast"

    def fill(self, child: Child) -> None:
        """Leave no byte free; on a plain folder, forbid the child's processes to write files."""
        if not self.is_mounted:
            for process in child.processes():
                with suppress(psutil.Error):
                    process.rlimit(psutil.RLIMIT_FSIZE, (0, psutil.RLIM_INFINITY))
            return
        with suppress(OSError), self._ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))

    def empty(self) -> None:
        """Give the space back."""
        self._ballast.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it."""
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """A :class:`SmallDisk` for a while."""
    disk = SmallDisk(folder)
    try:
        yield disk
    finally:
        disk.close()
