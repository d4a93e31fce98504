"""Compiled networks that are run again and again while they note the times of their kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from costlib.arrays import Floats, load_arrays, save_arrays
from costlib.errors import InputError, MeasureError
from costlib.measure.config import NetworkJob, TraceJob
from costlib.measure.measurer import Measurer
from costlib.tuning.compiled import CompiledNetwork
from costlib.workloads.interface import Kernel
from costlib.workloads.network import InputSpec

_QUIET_SHARE = 0.1
"""Of the calls, those that took least count."""


class Traced:
    """A compiled network whose kernels are timed in place, on random inputs.

    Parameters
    ----------
    library
        The compiled network.
    measurer
        Runs it.
    folder
        Where to keep files meanwhile.

    Attributes
    ----------
    kernels
        What it calls, in order.

    Raises
    ------
    InputError
        The library does not tell: an older costlib compiled it, or it is no straight line of
        kernels.
    """

    def __init__(self, library: Path, measurer: Measurer, folder: Path) -> None:
        network = CompiledNetwork.load(library)
        calls = network.calls
        if calls is None or network.signature is None:
            raise InputError(
                f"{library} does not tell where its time goes: an older costlib compiled it, or it "
                "has branches or unknown shapes; `costlib tune --resume` compiles it anew"
            )
        self.kernels: list[Kernel] = calls
        self._measurer = measurer
        self._path = str(library.resolve())
        self._inputs, self._times = (folder / f"{library.name}.{what}" for what in ("in", "times"))
        rng = np.random.default_rng(0)
        inputs = [
            InputSpec(spec.name, spec.dtype, spec.shape).random(rng)
            for spec in network.signature.inputs
        ]
        if (shapes := network.shapes) is not None:
            inputs += shapes.served(shapes.points[-1].sizes).lengths
        save_arrays(self._inputs, [*inputs, *(one.numpy() for one in network.first_state())])

    def plain(self, secs: float) -> float:
        """Run it for so long; return the seconds of its fastest call.

        Raises
        ------
        MeasureError
            It does not run.
        """
        return self._seconds(NetworkJob(path=self._path, inputs=str(self._inputs), secs=secs))

    def traced(self, secs: float) -> tuple[float, Floats]:
        """Do so while kernels are timed.

        Returns
        -------
        fastest_s, times_s
            The second: float64 `calls x (kernels + 1)`, last what is not inside any kernel.
        """
        times = str(self._times)
        job = TraceJob(path=self._path, inputs=str(self._inputs), times=times, secs=secs)
        fastest_s = self._seconds(job)
        (noted,) = load_arrays(self._times)
        return fastest_s, noted

    def _seconds(self, job: NetworkJob | TraceJob) -> float:
        outcome = self._measurer.run_job(job)
        if outcome.timing is None:
            raise MeasureError(f"the compiled network {job.path} does not run: {outcome.error}")
        return outcome.timing.run_secs[0]


def quiet_s(times: Floats) -> Floats:
    """Return what each part of a call takes while the machine is quiet.

    Parameters
    ----------
    times
        `calls x parts`, in seconds.

    Returns
    -------
    ndarray
        float64 `parts`: means over the calls that took least.
    """
    totals = times.sum(1)
    count = max(1, round(_QUIET_SHARE * len(totals)))
    quiet: Floats = times[np.argsort(totals, kind="stable")[:count]].mean(0)
    return quiet
