"""A tuned network against the untuned one and against PyTorch: latencies and outputs."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from costlib.errors import MeasureError
from costlib.frozen import Frozen
from costlib.measure.config import NetworkJob
from costlib.measure.jobs import fastest_call
from costlib.measure.measurer import Measurer
from costlib.workloads import Network

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
    max_abs_error
        Largest absolute difference between the tuned network's output and PyTorch's, or the
        untuned network's where there is no PyTorch version.
    max_abs_output
        Largest absolute value of the output, to compare the error with.
    """

    latency_before_s: float
    latency_after_s: float
    pytorch_latency_s: float | None
    max_abs_error: float
    max_abs_output: float


def compare(
    network: Network, untuned: Path, tuned: Path, measurer: Measurer, seed: int
) -> Comparison:
    """Run both libraries and PyTorch on the same random inputs, taking turns.

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
    seed
        Seed of the inputs.

    Raises
    ------
    MeasureError
        A library crashed or took too long.
    """
    inputs = network.random_inputs(seed)
    reference = network.reference
    turns: dict[str, list[float]] = {"untuned": [], "tuned": [], "pytorch": []}
    with tempfile.TemporaryDirectory(prefix="costlib-") as name:
        folder = Path(name)
        np.savez(folder / "inputs.npz", *inputs)
        for turn in range(_TURNS):
            for label, library in (("untuned", untuned), ("tuned", tuned)):
                outputs = folder / f"{label}.npz" if turn == 0 else None
                turns[label].append(_turn(measurer, library, folder / "inputs.npz", outputs))
            if reference is not None and measurer.devices is None:
                call = reference.timed(inputs)
                call()
                turns["pytorch"].append(fastest_call(call, _TURN_SECS))
        actual = _load(folder / "tuned.npz")
        expected = _load(folder / "untuned.npz") if reference is None else reference(inputs)
    pairs = list(zip(actual, expected, strict=True))
    return Comparison(
        latency_before_s=float(np.median(turns["untuned"])),
        latency_after_s=float(np.median(turns["tuned"])),
        pytorch_latency_s=float(np.median(turns["pytorch"])) if turns["pytorch"] else None,
        max_abs_error=max(_largest(a.astype("float64") - e) for a, e in pairs),
        max_abs_output=max(_largest(e) for _, e in pairs),
    )


def _turn(measurer: Measurer, library: Path, inputs: Path, outputs: Path | None) -> float:
    job = NetworkJob(
        path=str(library),
        inputs=str(inputs),
        outputs=None if outputs is None else str(outputs),
        secs=_TURN_SECS,
    )
    outcome = measurer.run_job(job)
    if outcome.timing is None:
        raise MeasureError(f"the compiled network {library} does not run: {outcome.error}")
    return outcome.timing.run_secs[0]


def _load(file: Path) -> Sequence[np.ndarray]:
    with np.load(file, allow_pickle=False) as arrays:
        return [arrays[name] for name in arrays.files]


def _largest(array: np.ndarray) -> float:
    largest = float(np.max(np.abs(array), initial=0))
    return math.inf if math.isnan(largest) else largest
