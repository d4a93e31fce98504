"""What the originals of a run's networks compute, which the compiled ones are held against."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from costlib.arrays import load_arrays, save_arrays
from costlib.errors import MeasureError
from costlib.measure.config import NetworkJob
from costlib.measure.measurer import Measurer
from costlib.scratch import ScratchFolder
from costlib.workloads.agreement import Expectation, OutputAgreement, telling_inputs
from costlib.workloads.network import Network

Arrays = Sequence[np.ndarray]

_KINDS = 2
"""Inputs that came with a network, and random ones."""


class Original:
    """A network's original, or its untuned version where there is none.

    Parameters
    ----------
    network
        The network as it was given.
    library
        The same, compiled untuned.
    measurer
        Runs it.

    Attributes
    ----------
    name
        What the original is called.
    inputs
        The network's inputs that latencies are measured with.
    faults
        What is wrong with the untuned network, a line for each output.
    """

    def __init__(self, network: Network, library: Path, measurer: Measurer) -> None:
        reference = network.reference
        self.name = "the untuned network" if reference is None else reference.name
        self._network = network
        self._specs = [*network.interface.outputs, *network.interface.state]
        self._trials: list[Expectation] = []
        kinds = [arrays for _, arrays in telling_inputs(network)][: _KINDS if reference else 1]
        for arrays in kinds:
            if reference is None:
                expected = outputs_of(library, [*arrays, *network.state], measurer)
                self._trials.append(Expectation(arrays, expected))
                continue
            try:
                self._trials.append(Expectation.of(reference, arrays))
            except Exception:  # Numbers that this network does not take.
                continue
        self.inputs = self._trials[0].inputs if self._trials else kinds[0]
        self.faults = faults_of(self.compare(library, measurer))

    def compare(self, library: Path, measurer: Measurer) -> list[OutputAgreement]:
        """Run a library and compare; of all inputs, those that show a difference, or the first."""
        first: list[OutputAgreement] = []
        for trial in self._trials:
            arrays = [*trial.inputs, *self._network.state]
            outputs = outputs_of(library, arrays, measurer)
            found = trial.compare(self._specs, outputs)
            if faults_of(found):
                return found
            first = first or found
        return first


def faults_of(outputs: Sequence[OutputAgreement]) -> list[str]:
    """Say in a line for each output what is wrong."""
    return [f"{output.name}: {output.fault}" for output in outputs if output.fault]


def outputs_of(library: Path, arrays: Arrays, measurer: Measurer) -> list[np.ndarray]:
    """Call a compiled network once, in a process of its own."""
    with ScratchFolder() as folder:
        inputs, outputs = folder / "inputs", folder / "outputs"
        save_arrays(inputs, arrays)
        job = NetworkJob(
            path=str(library.resolve()), inputs=str(inputs), outputs=str(outputs), secs=0
        )
        outcome = measurer.run_job(job)
        if outcome.timing is None:
            raise MeasureError(f"the compiled network {library} does not run: {outcome.error}")
        return load_arrays(outputs)
