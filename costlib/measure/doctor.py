"""Whether this machine is fit to tune on: versions, cores, memory, frequency, noise."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

from costlib.errors import CostlibError, EnvironmentMismatchError
from costlib.hardware import Hardware, find_hardware
from costlib.measure import doctor_devices
from costlib.measure.client import MeasureServer
from costlib.measure.config import CanaryJob
from costlib.tvm_compat.versions import check_versions

_PACKAGES = ("lightgbm", "torch", "pyarrow", "polars", "scikit-learn")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")

_SAMPLES = 300
_NOISY = 1.15
"""The slow moments of a quiet machine take less than so many times as long as its fast ones."""

_BUSY = 0.3
"""Processes that want to run, for each core, on a machine that does something else."""

_LITTLE_MEMORY = 2 << 30


class Finding(NamedTuple):
    """What was looked at.

    Attributes
    ----------
    check, value
        What, and what was found.
    advice
        What to do about it; empty if it is all right.
    fatal
        Whether nothing works as it is.
    """

    check: str
    value: str
    advice: str = ""
    fatal: bool = False


def examine_target(target: str) -> Iterator[Finding]:
    """Look at what building for a kind of device takes here, and at the device if it is here.

    Parameters
    ----------
    target
        As :func:`costlib.hardware.find_hardware` takes it: ``"cuda"``, ``"aarch64+dotprod"``.

    Raises
    ------
    TargetError
        There is no such hardware.
    """
    yield _tvm()
    hardware = Hardware.cuda("sm_90") if target == "cuda" else find_hardware(target)
    found = doctor_devices.findings(hardware, on_device=target == "cuda")
    yield from (Finding(*words) for words in found)


def examine() -> Iterator[Finding]:
    """Look at this machine, the quick checks first; the last one takes some seconds."""
    yield Finding("Python", platform.python_version())
    yield _tvm()
    for package in _PACKAGES:
        yield _version(package)
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    advice = "this process may not use all cores; they are what is tuned for"
    yield Finding("usable cores", f"{usable} of {present}", advice if usable < present else "")
    load = os.getloadavg()[0]
    advice = "something else is running; measurements will be noisy"
    yield Finding("load, last minute", f"{load:.2f}", advice if load > _BUSY * usable else "")
    free = psutil.virtual_memory().available
    advice = "builds and training may run out of memory" if free < _LITTLE_MEMORY else ""
    yield Finding("free memory", f"{free / 2**30:.1f} GiB", advice)
    yield _governor()
    yield from _noise()


def _tvm() -> Finding:
    try:
        check_versions()
    except EnvironmentMismatchError as error:
        return Finding("apache-tvm", "unusable", str(error), fatal=True)
    versions = [metadata.version(name) for name in ("apache-tvm", "apache-tvm-ffi")]
    return Finding("apache-tvm, -ffi", ", ".join(versions))


def _version(package: str) -> Finding:
    try:
        return Finding(package, metadata.version(package))
    except metadata.PackageNotFoundError:
        return Finding(package, "missing", f"run: pip install {package}", fatal=True)


def _governor() -> Finding:
    try:
        governor = _GOVERNOR.read_text().strip()
    except OSError:
        return Finding("frequency scaling", "not visible, as in a virtual machine")
    advice = "run: cpupower frequency-set -g performance"
    return Finding("frequency scaling", governor, "" if governor == "performance" else advice)


def _noise() -> Iterator[Finding]:
    """Time the canaries for a moment: how much slower slow moments are than fast ones."""
    try:
        with MeasureServer(Hardware.local().target) as server:
            timing = server.work([CanaryJob(samples=_SAMPLES)])[0].timing
    except CostlibError as error:
        yield Finding("measuring", "impossible", str(error), fatal=True)
        return
    if timing is None:
        yield Finding("measuring", "impossible", "the canaries do not run", fatal=True)
        return
    for what, secs in (("cache", timing.canary_compute), ("memory", timing.canary_memory)):
        fast, slow = np.quantile(secs, [0.2, 0.9])
        advice = "close what runs beside it; costlib corrects for some of it"
        found = f"{slow / fast:.2f} x the fast ones"
        yield Finding(f"slow moments, {what}", found, advice if slow > _NOISY * fast else "")
