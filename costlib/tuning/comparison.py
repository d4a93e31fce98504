"""A tuned network against the untuned one and against PyTorch: latencies and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import numpy as np
from pydantic import Field

from costlib.arrays import save_arrays
from costlib.errors import MeasureError
from costlib.frozen import Frozen
from costlib.measure.config import NetworkJob
from costlib.measure.jobs import fastest_call
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tuning.originals import Original
from costlib.tuning.pytorch_process import PatientPyTorch
from costlib.tuning.turns import Contestant, take_turns
from costlib.workloads import Network, TorchReference
from costlib.workloads.agreement import OutputAgreement

_FIRST_TURNS, _MOST_TURNS = 4, 9

_HARM = 1.5
"""How much slower than one thread several may be without anything being wrong."""


class Comparison(Frozen):
    """Whole-network figures.

    Attributes
    ----------
    latency_before_s, latency_after_s, pytorch_latency_s
        Seconds of one call, untuned, tuned, and PyTorch's on the same inputs (``None`` for a
        network that did not come from PyTorch, or
        runs on another machine): each turn's fastest call, medians over the turns that were
        disturbed least.
    spread_s
        Seconds of the fastest and the slowest of those turns, by ``"untuned"``, ``"tuned"`` and
        ``"PyTorch"``; empty in results of older versions.
    doubtful
        Those of ``"untuned"``, ``"tuned"`` and ``"PyTorch"`` whose turns did not agree.
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
    spread_s: dict[str, tuple[float, float]] = Field(default_factory=dict)
    doubtful: tuple[str, ...] = ()
    original: str = "PyTorch"
    outputs: tuple[OutputAgreement, ...] = ()
    max_abs_error: float
    max_abs_output: float


def compare(
    network: Network,
    original: Original,
    tuned: Path,
    measurer: Measurer,
    outputs: Sequence[OutputAgreement],
    tuned_s: float,
) -> Comparison:
    """Time both libraries and PyTorch on the same inputs, taking turns until they agree.

    The libraries run in a process of their own: TVM pins the threads of a process to cores,
    which would slow PyTorch down a hundredfold. PyTorch is given its best setting: all threads,
    one, and, where the machine is too busy for threads that spin, some that do not.

    Parameters
    ----------
    network
        The network.
    original, tuned
        Its original with the untuned library, and the tuned library.
    measurer
        Runs them.
    outputs, tuned_s
        How the tuned network's outputs agree with the original's, and what a call took then: of a
        slow network, that counts.

    Raises
    ------
    MeasureError
        A library crashed or took too long.
    """
    with ScratchFolder() as folder, ExitStack() as stack:
        file = folder / "inputs"
        inputs = original.inputs
        save_arrays(file, [*inputs, *network.state])
        before = Contestant(partial(_run, measurer, original.library, file), is_yardstick=True)
        before.count(original.untuned_s)
        after = Contestant(partial(_run, measurer, tuned, file))
        after.count(tuned_s)
        pytorch: list[Contestant] = []
        if isinstance(network.reference, TorchReference) and measurer.devices is None:
            threads = measurer.hardware.num_cores
            pytorch = _in_process(network.reference, inputs, threads)
            take_turns([before, after, *pytorch], _FIRST_TURNS)
            if not _is_undisturbed(pytorch):
                with suppress(MeasureError):
                    patient = PatientPyTorch(network.reference, inputs, threads)
                    stack.enter_context(patient)
                    patient.fastest_call(0)
                    pytorch.append(Contestant(patient.fastest_call))
        take_turns([before, after, *pytorch[-1:]], _MOST_TURNS)
    best = min(pytorch, key=lambda one: one.latency_s, default=None)
    timed = {"untuned": before, "tuned": after}
    if best is not None:
        timed["PyTorch"] = best
    return Comparison(
        latency_before_s=before.latency_s,
        latency_after_s=after.latency_s,
        pytorch_latency_s=None if best is None else best.latency_s,
        spread_s={what: one.spread_s for what, one in timed.items()},
        doubtful=tuple(what for what, one in timed.items() if not one.is_settled),
        original=original.name,
        outputs=tuple(outputs),
        max_abs_error=max((output.max_abs_error or 0.0 for output in outputs), default=0.0),
        max_abs_output=max((output.max_abs_output or 0.0 for output in outputs), default=0.0),
    )


def _in_process(
    reference: TorchReference, inputs: Sequence[np.ndarray], threads: int
) -> list[Contestant]:
    """Return PyTorch with one thread and with all."""
    import torch

    call = reference.timed(inputs)

    def run(count: int, secs: float) -> float:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            call()
            return fastest_call(call, secs)
        finally:
            torch.set_num_threads(before)

    return [Contestant(partial(run, count)) for count in sorted({1, threads})]


def _is_undisturbed(pytorch: Sequence[Contestant]) -> bool:
    """Whether threads help, or at least do no harm, and their turns agree."""
    one, all_of_them = pytorch[0], pytorch[-1]
    return all_of_them.is_settled and all_of_them.latency_s <= _HARM * one.latency_s


def _run(measurer: Measurer, library: Path, inputs: Path, secs: float) -> float:
    job = NetworkJob(path=str(library.resolve()), inputs=str(inputs), secs=secs)
    outcome = measurer.run_job(job)
    if outcome.timing is None:
        raise MeasureError(f"the compiled network {library} does not run: {outcome.error}")
    return outcome.timing.run_secs[0]
