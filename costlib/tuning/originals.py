"""What the originals of a run's networks compute, which the compiled ones are held against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from costlib.arrays import load_arrays, save_arrays
from costlib.errors import MeasureError
from costlib.measure.config import NetworkJob
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.tvm_compat.direct_calls import MAIN
from costlib.workloads.agreement import Expectation, OutputAgreement, telling_inputs
from costlib.workloads.network import Network

Arrays = Sequence[np.ndarray]

ROUNDED = "the rounded network in float32"
"""What a network that is rounded to fewer bits is held against."""

_ROUNDED_OTHERWISE = 2.0
"""How many times as far as our rounding may that of an engine be from the original."""

_KINDS = 2
"""Inputs that came with a network, and random ones."""


class Original:
    """A network's original, or its untuned version where there is none.

    Parameters
    ----------
    network
        The network as it was given.
    library
        The same, compiled untuned; an attribute, too.
    measurer
        Runs it.
    rounded
        The same in float32 with its numbers rounded, compiled untuned: what a network that is
        rounded to fewer bits is held against.

    Attributes
    ----------
    name
        What the original is called.
    inputs
        The network's inputs that latencies are measured with.
    faults
        What is wrong with the untuned network, a line for each output.
    untuned_s
        Seconds of each call of the untuned network.
    rounding_error
        Largest difference between what the original computes and what the rounded network does;
        ``None`` without either.
    """

    def __init__(
        self, network: Network, library: Path, measurer: Measurer, rounded: Path | None = None
    ) -> None:
        reference = network.reference
        self.name = "the untuned network" if reference is None else reference.name
        self.library = library
        self._network = network
        self._specs = [*network.interface.outputs, *network.interface.state]
        self._trials: list[Expectation] = []
        kinds = [arrays for _, arrays in telling_inputs(network)][: _KINDS if reference else 1]
        for arrays in kinds:
            if reference is None:
                expected, _ = call_library(library, [*arrays, *network.state], measurer)
                self._trials.append(Expectation(arrays, expected, precision=network.precision))
                continue
            try:
                self._trials.append(Expectation.of(reference, arrays, network.precision))
            except Exception:  # Numbers that this network does not take.
                continue
        self._plain = self._trials[:1]
        self._rounding_share = 0.0
        self.rounding_error: float | None = None
        if rounded is not None:
            self.name = ROUNDED
            self._hold_against(rounded, measurer)
        self.inputs = self._trials[0].inputs if self._trials else kinds[0]
        outputs, self.untuned_s = self.compare(library, measurer)
        self.faults = faults_of(outputs)

    def judge(self, outputs: Arrays, *, rounds_weights: bool = False) -> list[OutputAgreement]:
        """Compare what something else computes of :attr:`inputs`.

        What rounds weights itself may be off by about as much as rounding ours makes a difference:
        by nothing more if ours are not rounded.
        """
        share = _ROUNDED_OTHERWISE * self._rounding_share if rounds_weights else 0.0
        specs = self._network.interface.outputs
        count = len(specs)
        found: list[OutputAgreement] = []
        for trial in self._plain:
            nudged = [some[:count] for some in trial.nudged]
            stateless = Expectation(
                trial.inputs,
                trial.expected[:count],
                nudged,
                precision=trial.precision,
                share=share,
            )
            found += stateless.compare(specs, outputs)
        return found

    def _hold_against(self, rounded: Path, measurer: Measurer) -> None:
        """Expect what a library computes of the same inputs, and note how far that is off."""
        held: list[Expectation] = []
        errors = [0.0]
        for trial in self._trials:
            expected, _ = call_library(rounded, [*trial.inputs, *self._network.state], measurer)
            found = trial.compare(self._specs, expected)
            errors += [one.max_abs_error for one in found if one.max_abs_error is not None]
            if not held:
                self._rounding_share = max((_share_of(one) for one in found), default=0.0)
            held.append(Expectation(trial.inputs, expected, precision=trial.precision))
        self._trials = held
        if self._network.reference is not None:
            self.rounding_error = max(errors)

    def compare(
        self, library: Path, measurer: Measurer, function: str = MAIN
    ) -> tuple[list[OutputAgreement], list[float]]:
        """Run a function of a library and compare what it returns with what the original does.

        Returns
        -------
        outputs, calls_s
            How the outputs agree, for those inputs that show a difference, or the first; and the
            seconds of each call.
        """
        return self.compare_calls(lambda arrays: call_library(library, arrays, measurer, function))

    def compare_calls(
        self, call: Callable[[Arrays], tuple[Arrays, float]]
    ) -> tuple[list[OutputAgreement], list[float]]:
        """Do as :meth:`compare` with what returns the outputs for inputs, and a call's seconds."""
        first: list[OutputAgreement] = []
        calls_s: list[float] = []
        for trial in self._trials:
            outputs, call_s = call([*trial.inputs, *self._network.state])
            calls_s.append(call_s)
            found = trial.compare(self._specs, outputs)
            if faults_of(found):
                return found, calls_s
            first = first or found
        return first, calls_s


def _share_of(output: OutputAgreement) -> float:
    """Return the largest difference as a share of the largest element."""
    return (output.max_abs_error or 0.0) / (output.max_abs_output or np.inf)


def faults_of(outputs: Sequence[OutputAgreement]) -> list[str]:
    """Say in a line for each output what is wrong."""
    return [f"{output.name}: {output.fault}" for output in outputs if output.fault]


def call_library(
    library: Path, arrays: Arrays, measurer: Measurer, function: str = MAIN
) -> tuple[list[np.ndarray], float]:
    """Call a compiled network in a process of its own; return its outputs and a call's seconds."""
    with ScratchFolder() as folder:
        inputs, outputs = folder / "inputs", folder / "outputs"
        save_arrays(inputs, arrays)
        job = NetworkJob(
            path=str(library.resolve()),
            function=function,
            inputs=str(inputs),
            outputs=str(outputs),
            secs=0,
        )
        outcome = measurer.run_job(job)
        if outcome.timing is None:
            raise MeasureError(f"the compiled network {library} does not run: {outcome.error}")
        return load_arrays(outputs), outcome.timing.run_secs[0]
