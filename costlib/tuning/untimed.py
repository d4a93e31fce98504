"""Networks for a device that is not there: compiled, compared where possible, never timed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from costlib.errors import EnvironmentMismatchError
from costlib.hardware import Hardware
from costlib.measure.emulator import EmulatedNetwork
from costlib.scratch import ScratchFolder
from costlib.tuning.compiling import Built, Compiler
from costlib.tuning.originals import Original
from costlib.tuning.result import UntimedNetwork
from costlib.tvm_compat.link import is_foreign
from costlib.workloads import Network
from costlib.workloads.agreement import OutputAgreement, largest_of


class UntimedCompiler(Compiler):
    """Compiles the networks of a run for a device that nothing can be measured on.

    The untuned network is compared with its original on this machine: what was imported is the same
    for all. The tuned one is compared here if this machine runs its code, in an emulator if that is
    installed, else not at all.
    """

    _not_compared: str | None = None

    def _untuned_on(self) -> Hardware:
        return Hardware.local()

    def _compare(
        self, original: Original, built: Built
    ) -> tuple[list[OutputAgreement], list[float]]:
        self._not_compared = None
        try:
            return self._compared(original, built)
        except EnvironmentMismatchError as error:
            self._not_compared = str(error)
            return [], []

    def _compared(
        self, original: Original, built: Built
    ) -> tuple[list[OutputAgreement], list[float]]:
        if self._hardware.kind != "cpu":
            raise EnvironmentMismatchError(
                f"code for {self._hardware.family} needs such a device, and nothing emulates one"
            )
        if not is_foreign(built.library.triple):
            return original.compare(built.path, self._measurer)
        if built.library.direct is None:
            raise EnvironmentMismatchError(
                "it has branches or unknown shapes, which takes TVM's runtime to run"
            )
        with ScratchFolder() as folder:
            emulated = EmulatedNetwork(
                built.library.direct, built.library.save_object, built.library.triple, folder
            )
            return original.compare_calls(lambda arrays: (emulated(arrays), math.inf))

    def _result(
        self,
        network: Network,
        original: Original,
        built: Built,
        outputs: Sequence[OutputAgreement],
        tuned_s: Sequence[float],
    ) -> UntimedNetwork:
        del tuned_s
        return UntimedNetwork(
            network=network.name,
            library=str(built.path),
            original=original.name,
            outputs=tuple(outputs),
            not_compared=self._not_compared,
            max_abs_error=largest_of(output.max_abs_error for output in outputs),
            max_abs_output=largest_of(output.max_abs_output for output in outputs),
        )

    def _fastest(self, close: Sequence[int], database: Any) -> int:
        del database
        return close[0]

    def _note_profile(
        self, out: Path, results: Sequence[UntimedNetwork], latency_s: Sequence[float]
    ) -> None:
        """There are no times to note."""
