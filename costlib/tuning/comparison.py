"""A tuned network against the untuned one and against PyTorch: latencies and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from costlib.arrays import save_arrays
from costlib.errors import MeasureError
from costlib.frozen import Frozen
from costlib.measure.config import NetworkJob
from costlib.measure.jobs import fastest_call
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.workloads import Network, TorchReference
from costlib.workloads.agreement import OutputAgreement

_TURNS = 7
_TURN_SECS = 0.3


class Comparison(Frozen):
    """Whole-network figures.

    Attributes
    ----------
    latency_before_s, latency_after_s, pytorch_latency_s
        Seconds of one call, untuned, tuned, and PyTorch's on the same inputs (``None`` for a
        network that did not come from PyTorch, or
        runs on another machine): medians over turns, each turn's fastest call.
    original
        What the outputs are compared with.
    outputs
        The tuned network's outputs beside the original's.
    max_abs_error, max_abs_output
        Their largest difference, and the original's largest element.
    """

    latency_before_s: float
    latency_after_s: float
    pytorch_latency_s: float | None
    original: str = "PyTorch"
    outputs: tuple[OutputAgreement, ...] = ()
    max_abs_error: float
    max_abs_output: float


def compare(
    network: Network,
    untuned: Path,
    tuned: Path,
    measurer: Measurer,
    original: str,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[OutputAgreement],
) -> Comparison:
    """Time both libraries and PyTorch on the same inputs, taking turns.

    The libraries run in a process of their own: TVM pins the threads of a process to cores,
    which would slow PyTorch down a hundredfold.

    Parameters
    ----------
    network
        The network that both libraries were compiled from.
    untuned, tuned
        The libraries.
    measurer
        Runs them.
    original, inputs, outputs
        What the tuned network's outputs were compared with, on which inputs, and how they agree.

    Raises
    ------
    MeasureError
        A library crashed or took too long.
    """
    reference = network.reference
    turns: dict[str, list[float]] = {"untuned": [], "tuned": [], "pytorch": []}
    with ScratchFolder() as folder:
        file = folder / "inputs"
        save_arrays(file, [*inputs, *network.state])
        for _ in range(_TURNS):
            for label, library in (("untuned", untuned), ("tuned", tuned)):
                turns[label].append(_turn(measurer, library, file))
            if isinstance(reference, TorchReference) and measurer.devices is None:
                call = reference.timed(inputs)
                call()
                turns["pytorch"].append(fastest_call(call, _TURN_SECS))
    return Comparison(
        latency_before_s=float(np.median(turns["untuned"])),
        latency_after_s=float(np.median(turns["tuned"])),
        pytorch_latency_s=float(np.median(turns["pytorch"])) if turns["pytorch"] else None,
        original=original,
        outputs=tuple(outputs),
        max_abs_error=max((output.max_abs_error or 0.0 for output in outputs), default=0.0),
        max_abs_output=max((output.max_abs_output or 0.0 for output in outputs), default=0.0),
    )


def _turn(measurer: Measurer, library: Path, inputs: Path) -> float:
    job = NetworkJob(path=str(library.resolve()), inputs=str(inputs), secs=_TURN_SECS)
    outcome = measurer.run_job(job)
    if outcome.timing is None:
        raise MeasureError(f"the compiled network {library} does not run: {outcome.error}")
    return outcome.timing.run_secs[0]
