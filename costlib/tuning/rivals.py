"""What a tuned network is timed beside: PyTorch, and the engines that were asked for.

Each runs in the setting that suits it best. PyTorch is given all threads, or one. Where the machine
is too busy for threads that spin, all are given threads that sleep.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from costlib.errors import MeasureError
from costlib.measure.jobs import fastest_call
from costlib.scratch import ScratchFolder
from costlib.tuning.engines.catalogue import PYTORCH, Engine
from costlib.tuning.engines.handover import Handover
from costlib.tuning.engines.loading import Setting
from costlib.tuning.engines.process import EngineProcess
from costlib.tuning.originals import Original, faults_of
from costlib.tuning.turns import Contestant
from costlib.workloads import Network, TorchReference
from costlib.workloads.agreement import OutputAgreement

_HARM = 1.5
"""How much slower than one thread several may be without anything being wrong."""

_ELSEWHERE = "the network does not run on this machine's CPU"

_log = logging.getLogger(__name__)


@dataclass
class Rival:
    """An engine at work on a network.

    Attributes
    ----------
    engine
        What it is.
    settings
        It in each setting that is tried.
    outputs
        Its outputs beside the original's.
    problem
        Why it has no latency, in a line.
    """

    engine: Engine
    settings: list[Contestant] = field(default_factory=list)
    outputs: Sequence[OutputAgreement] = ()
    problem: str | None = None
    _process: EngineProcess | None = None

    @property
    def best(self) -> Contestant | None:
        """The fastest of its settings; ``None`` if it runs in none."""
        alive = [one for one in self.settings if one.turns and math.inf not in one.turns]
        return min(alive, key=lambda one: one.latency_s, default=None)

    def add(self, process: EngineProcess) -> None:
        """Take a process as one more setting; that no longer counts once the process has died.

        The one before it has had its turns, and ends: a network may need much memory.
        """
        if self._process is not None:
            self._process.close()
        self._process = process

        def run(secs: float) -> float:
            try:
                return process.fastest_call(secs)
            except MeasureError as error:
                if self.problem is None:
                    self.give_up(error)
                return math.inf

        self.settings.append(Contestant(run))

    def give_up(self, error: MeasureError) -> None:
        """Note why it does not run, and say so unless that was said before the run."""
        self.problem = str(error)
        if self.engine.missing() is None:
            _log.warning("%s: %s", self.engine.title, error)


class Rivals(AbstractContextManager["Rivals"]):
    """All that one network is timed beside; use as a context manager, which ends their processes.

    Parameters
    ----------
    network, original
        The network, what its outputs should be, and for which inputs.
    setting
        What they run on; ``None`` if the network runs on another machine, and they cannot. On a GPU
        each has a process of its own, PyTorch as well.
    engines
        Those that were asked for.
    report
        Told what is being done.

    Attributes
    ----------
    pytorch
        PyTorch; ``None`` if the network did not come from it.
    engines
        The others.
    """

    def __init__(
        self,
        network: Network,
        original: Original,
        setting: Setting | None,
        engines: Sequence[Engine],
        report: Callable[[str], None],
    ) -> None:
        self.pytorch: Rival | None = None
        self.engines = [Rival(engine, problem=_ELSEWHERE) for engine in engines]
        self._setting: Setting | None = None
        self._stack = ExitStack()
        if setting is None:
            if engines:
                _log.warning("%s: it is not compared with other engines", _ELSEWHERE)
            return
        self._setting = setting
        folder = self._stack.enter_context(ScratchFolder())
        reference = network.reference
        try:
            self._handover = Handover(reference, original.inputs, folder)
            if isinstance(reference, TorchReference) and setting.device != "cpu":
                report(f"loading {network.name} into PyTorch on the device")
                self.pytorch = Rival(PYTORCH)
                self._start(self.pytorch, original)
            for rival in self.engines:
                report(f"loading {network.name} into {rival.engine.title}")
                self._start(rival, original)
        except BaseException:
            self._stack.close()
            raise
        if isinstance(reference, TorchReference) and setting.device == "cpu":
            settings = _in_this_process(reference, original.inputs, setting.threads)
            self.pytorch = Rival(PYTORCH, settings)

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def names(self) -> str:
        """Those that run the network, in words."""
        return ", ".join(["untuned", *(rival.engine.title for rival in self._running)])

    @property
    def settings(self) -> list[Contestant]:
        """Each of them in each setting."""
        return [one for rival in self._running for one in rival.settings]

    @property
    def last_settings(self) -> list[Contestant]:
        """Each of them in the setting that was added last."""
        return [rival.settings[-1] for rival in self._running]

    @property
    def best(self) -> dict[str, Contestant]:
        """The best setting of each of them that runs the network to the end, by its title."""
        found = {rival.engine.title: rival.best for rival in self._running}
        return {title: best for title, best in found.items() if best is not None}

    @property
    def _running(self) -> list[Rival]:
        pytorch = [] if self.pytorch is None else [self.pytorch]
        return [one for one in (*pytorch, *self.engines) if one.settings]

    def calm_down(self) -> None:
        """Try those whose threads disturb each other with threads that sleep, if that works.

        On a GPU hardly anything depends on threads.
        """
        if self._setting is not None and self._setting.device != "cpu":
            return
        for rival in self._running:
            if not _is_undisturbed(rival.settings):
                with suppress(MeasureError):
                    rival.add(self._process(rival.engine, patient=True))

    def _start(self, rival: Rival, original: Original) -> None:
        rival.problem = None
        try:
            process = self._process(rival.engine)
            rival.outputs = original.judge(
                process.outputs, rounds_weights=rival.engine.rounds_weights
            )
            if faults := faults_of(rival.outputs):
                raise MeasureError(f"it computes something else: {'; '.join(faults)}")
            rival.add(process)
        except MeasureError as error:
            rival.give_up(error)

    def _process(self, engine: Engine, *, patient: bool = False) -> EngineProcess:
        assert self._setting is not None
        process = EngineProcess(engine, self._handover, self._setting, patient=patient)
        return self._stack.enter_context(process)


def _in_this_process(
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


def _is_undisturbed(settings: Sequence[Contestant]) -> bool:
    """Whether all threads help, or at least do no harm, and their turns agree."""
    last = settings[-1]
    return last.is_settled and last.latency_s <= _HARM * settings[0].latency_s
