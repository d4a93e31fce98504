"""An engine in a process of its own, and our end of it.

Where its threads spin while they wait for each other, and the machine does something else, too, one
of them spins for another, which the machine lets wait: a call takes many times as long as it
should. How they wait is decided when a process loads the engine.

The process runs as ``python -m costlib.tuning.engines.process FD FOLDER ENGINE SETTING``;
the file descriptor is a socket. Seconds come in; those of the fastest call in that time go out.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from costlib.arrays import load_arrays, save_arrays
from costlib.errors import MeasureError
from costlib.tuning.engines.answering import Answering, serve
from costlib.tuning.engines.catalogue import ENGINES, PYTORCH, Engine
from costlib.tuning.engines.handover import INPUTS, Handover
from costlib.tuning.engines.loading import PASSIVE, Setting

_OUTPUTS = "outputs-"
_START_SECS = 1800.0
"""A large network may be compiled for long."""

_CALL_SECS = 120.0


class EngineProcess(AbstractContextManager["EngineProcess"]):
    """A network in an engine, loaded and called once; use as a context manager.

    Parameters
    ----------
    engine
        The engine.
    handover
        The network.
    setting
        What it runs on.
    patient
        Whether they sleep while they wait for each other, as far as the engine lets us choose.

    Attributes
    ----------
    outputs
        What the network computes there.

    Raises
    ------
    MeasureError
        The engine is not installed, or the network does not run there.
    """

    outputs: list[np.ndarray]

    def __init__(
        self, engine: Engine, handover: Handover, setting: Setting, *, patient: bool = False
    ) -> None:
        if (missing := engine.missing()) is not None:
            raise MeasureError(missing)
        handover.provide(engine.takes)
        environment: Mapping[str, str] = {
            **engine.environment,
            **(PASSIVE if patient else {}),
            "TORCHINDUCTOR_CACHE_DIR": str(handover.folder / "compiled"),
        }
        given = [str(handover.folder), engine.name, setting.model_dump_json()]
        self._process = Answering("it", __name__, *given, environment=environment)
        try:
            self._process.answer(_START_SECS)
            self.outputs = load_arrays(handover.folder / (_OUTPUTS + engine.name))
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if that was not done before."""
        self._process.close()

    def fastest_call(self, secs: float) -> float:
        """Return the seconds of the fastest call in a while; raise ``MeasureError`` if it dies."""
        return float(self._process.ask(secs, secs + _CALL_SECS))


def main() -> None:
    """Time the network in the folder on the command line, until the other end is closed."""
    with serve() as (reply, question, (folder, name, setting)):
        from costlib.measure.jobs import fastest_call

        engine = ENGINES.get(name, PYTORCH)
        inputs = load_arrays(Path(folder) / INPUTS)
        call, found = engine.load(Path(folder), inputs, Setting.model_validate_json(setting))
        save_arrays(Path(folder) / (_OUTPUTS + name), found)
        reply()
        while True:
            reply(fastest_call(call, question()))


if __name__ == "__main__":
    main()
