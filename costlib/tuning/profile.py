"""Where a compiled network's time goes: kernel by kernel, as it runs.

The network notes the time before each kernel and after the last one (see
:mod:`costlib.tvm_compat.direct_calls`); what is not inside any kernel is dispatch.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from costlib.arrays import Floats
from costlib.errors import CostlibError, InputError, MeasureError
from costlib.files import write_file
from costlib.frozen import Frozen
from costlib.hardware import Hardware
from costlib.measure.canary_kernels import CPU_MEMORY_BYTES
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.result import NetworkResult, read_result
from costlib.tuning.traces import Traced, quiet_s
from costlib.tuning.turns import Contestant, take_turns
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads.interface import Kernel

PROFILE = "profile.json"
"""In a run's folder."""

_TURNS = 5
_log = logging.getLogger(__name__)


class KernelProfile(Kernel):
    """One call of a kernel.

    Attributes
    ----------
    latency_s
        Seconds that it takes in the network.
    tuned_s
        Seconds that it took when it was tuned; ``None`` if that is not known.
    """

    latency_s: float
    tuned_s: float | None


class NetworkProfile(Frozen):
    """Where the time of a call of a network goes.

    Attributes
    ----------
    network
        Its name.
    network_s
        Seconds of a call.
    tasks_s
        What its kernels took when they were tuned, together; those of which that is not known count
        as they are in the network.
    dispatch_s
        Seconds that no kernel is at work.
    unexplained_s
        The rest: what kernels take more in the network than when they were tuned, because caches
        are cold, or memory is needed for others.
    tracing
        Share of the time that noting it takes.
    memory_bytes_per_s
        What the machine reads from memory at most.
    kernels
        Each call, in order.
    """

    network: str
    network_s: float
    tasks_s: float
    dispatch_s: float
    unexplained_s: float
    tracing: float
    memory_bytes_per_s: float
    kernels: tuple[KernelProfile, ...]

    def by_task(self) -> list[list[KernelProfile]]:
        """Return the calls of each task, of that which takes most time first."""
        groups: dict[str, list[KernelProfile]] = {}
        for kernel in self.kernels:
            groups.setdefault(kernel.name, []).append(kernel)
        return sorted(groups.values(), key=total_s, reverse=True)


class RunProfile(Frozen):
    """Where the time of a run's networks goes; without those that do not tell."""

    networks: tuple[NetworkProfile, ...]


def total_s(kernels: Sequence[KernelProfile]) -> float:
    """Return the seconds that some calls take in the network together."""
    return sum(kernel.latency_s for kernel in kernels)


def profile_network(
    name: str, library: Path, measurer: Measurer, tuned_s: Mapping[str, float]
) -> NetworkProfile:
    """Run a compiled network and note where its time goes.

    Parameters
    ----------
    name, library
        Of the network.
    measurer
        Runs it.
    tuned_s
        Latencies of its tasks, by workload id.

    Raises
    ------
    InputError
        The library does not tell: an older costlib compiled it, or it is no straight line of
        kernels.
    MeasureError
        It does not run.
    """
    with ScratchFolder() as folder:
        network = Traced(library, measurer, folder)
        times: list[Floats] = []

        def traced(secs: float) -> float:
            fastest_s, noted = network.traced(secs)
            times.append(noted)
            return fastest_s

        contestants = Contestant(network.plain), Contestant(traced)
        take_turns(contestants, _TURNS)
    network_s, traced_s = (min(one.turns) for one in contestants)
    *latencies_s, dispatch_s = quiet_s(np.concatenate(times)).tolist()
    kernels = tuple(
        KernelProfile(
            **call.model_dump(), latency_s=latency_s, tuned_s=tuned_s.get(call.workload_id)
        )
        for call, latency_s in zip(network.kernels, latencies_s, strict=True)
    )
    tasks_s = sum(k.latency_s if k.tuned_s is None else k.tuned_s for k in kernels)
    return NetworkProfile(
        network=name,
        network_s=network_s,
        tasks_s=tasks_s,
        dispatch_s=dispatch_s,
        unexplained_s=network_s - dispatch_s - tasks_s,
        tracing=traced_s / network_s - 1,
        memory_bytes_per_s=CPU_MEMORY_BYTES / measurer.reference.memory_s,
        kernels=kernels,
    )


def profile_run(folder: Path) -> RunProfile:
    """Profile the compiled networks of a run on this machine, and keep that in its folder.

    Raises
    ------
    InputError
        It is no run, one on a simulated device, or none of its networks tells where its time goes.
    StorageError
        It cannot be written.
    """
    result = read_result(folder)
    if result.simulated:
        raise InputError(f"{folder} is a run on a simulated device; there is no time to profile")
    tuned_s = {
        task.workload_id: task.latency_s for task in result.tasks if task.latency_s is not None
    }
    with Measurer(Hardware.local()) as measurer:
        found, reasons = note_profile(folder, result.networks, measurer, tuned_s)
    if reasons and not found.networks:
        raise reasons[0]
    for reason in reasons:
        _log.warning("%s", reason)
    return found


def note_profile(
    folder: Path,
    networks: Sequence[NetworkResult],
    measurer: Measurer,
    tuned_s: Mapping[str, float],
) -> tuple[RunProfile, list[CostlibError]]:
    """Profile a run's networks, keep that in its folder, and say why some do not tell."""
    profiles: list[NetworkProfile] = []
    reasons: list[CostlibError] = []
    for network in networks:
        if network.function != MAIN:
            continue
        library = folder / Path(network.library).name
        try:
            profiles.append(profile_network(network.network, library, measurer, tuned_s))
        except (InputError, MeasureError) as error:
            reasons.append(error)
    found = RunProfile(networks=tuple(profiles))
    write_file(folder / PROFILE, (found.model_dump_json(indent=1) + "\n").encode())
    return found, reasons


def forget_profile(folder: Path) -> None:
    """Remove what was noted of a run's networks: they are about to be compiled anew."""
    (folder / PROFILE).unlink(missing_ok=True)


def read_profile(folder: Path) -> RunProfile:
    """Read what was noted in a run's folder; where nothing was, or it is damaged: no networks."""
    try:
        return RunProfile.model_validate_json((folder / PROFILE).read_bytes())
    except (OSError, ValidationError):
        return RunProfile(networks=())
